// Modules and launches: variables and their images, constants, shared memory, printf and assert,
// and what is refused.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "emulator/execute/launch_state.h"
#include "emulator/testing/kernel_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay::emulator {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kHead[] = ".version 8.0\n.target sm_80\n.address_size 64\n";

constexpr char kVariables[] = R"(
.global .align 4 .u32 count = 5;
.global .align 4 .b32 table[4] = {10, 20, 30, 40};
.global .align 8 .u64 inner = generic(table)+8;
.global .align 4 .b8 room[8];
.const .align 4 .f32 factors[2] = {1.5, 2.5};
.visible .entry kernel(.param .u64 out)
{
  .reg .b32 %r<8>;
  .reg .f32 %f<4>;
  .reg .b64 %d<8>;
  ld.param.u64 %d0, [out];
  ld.global.u32 %r0, [count];
  add.u32 %r1, %r0, 1;
  st.global.u32 [count], %r1;
  ld.global.u64 %d1, [inner];
  ld.u32 %r2, [%d1];
  st.u32 [%d1], 99;
  ld.const.f32 %f0, [factors+4];
  cvt.rzi.u32.f32 %r3, %f0;
  ld.global.u32 %r4, [room+4];
  st.global.u32 [room+4], 3;
  st.global.v4.u32 [%d0], {%r0, %r2, %r3, %r4};
  ret;
}
)";

class VariablesTest : public testing::Test {
 protected:
  std::vector<uint32_t> RunOnce() {
    const uint64_t out = device_.Reserve("out", 16);
    const LaunchResult result = device_.Run("kernel", KernelArguments::Of(out), GridOf(1, 1));
    EXPECT_TRUE(result.faults.empty()) << Describe(result.faults);
    return device_.Get<uint32_t>(out, 4);
  }
  KernelFixture device_{absl::StrCat(kHead, kVariables)};
};

TEST_F(VariablesTest, BeginWithTheirImageAndKeepWhatIsWritten) {
  EXPECT_THAT(RunOnce(), ElementsAre(5, 30, 2, 0));
  EXPECT_THAT(RunOnce(), ElementsAre(6, 99, 2, 3));
}

TEST_F(VariablesTest, AreResetToTheirImage) {
  RunOnce();
  ASSERT_TRUE(device_.module()->ResetVariables().ok());
  EXPECT_THAT(RunOnce(), ElementsAre(5, 30, 2, 0));
}

TEST_F(VariablesTest, HaveAddressesForTheHost) {
  const auto count = device_.module()->Variable("count");
  ASSERT_TRUE(count.ok()) << count.status();
  EXPECT_EQ(count->bytes, 4u);
  const absl::StatusOr<std::byte*> host = device_.memory().Range(count->address, 4);
  ASSERT_TRUE(host.ok());
  **host = std::byte{42};
  EXPECT_EQ(RunOnce()[0], 42u);
  EXPECT_EQ(device_.module()->Variable("factors")->bytes, 8u);
  EXPECT_EQ(device_.module()->Variable("nothing").status().code(), absl::StatusCode::kNotFound);
}

TEST(SharedMemoryTest, DynamicPartFollowsTheStaticOne) {
  KernelFixture device(absl::StrCat(kHead, R"(
.extern .shared .align 16 .b8 dynamic[];
.visible .entry kernel(.param .u64 out)
{
  .reg .b32 %r<8>;
  .reg .b64 %d<4>;
  .shared .align 4 .b8 fixed[20];
  ld.param.u64 %d0, [out];
  mov.u32 %r0, dynamic;
  mov.u32 %r1, fixed;
  sub.u32 %r2, %r0, %r1;
  mov.u32 %r3, %dynamic_smem_size;
  mov.u32 %r4, %total_smem_size;
  and.b32 %r5, %r0, 15;
  st.shared.u32 [dynamic+96], %r5;
  ld.shared.u32 %r6, [dynamic+96];
  st.global.v4.u32 [%d0], {%r2, %r3, %r4, %r6};
  ret;
})"));
  const uint64_t out = device.Reserve("out", 16);
  LaunchOptions options = GridOf(1, 1);
  options.dynamic_shared_bytes = 100;
  const LaunchResult result = device.Run("kernel", KernelArguments::Of(out), options);
  EXPECT_TRUE(result.faults.empty()) << Describe(result.faults);
  EXPECT_THAT(device.Get<uint32_t>(out, 4), ElementsAre(32, 100, 132, 0));
}

// Every block and launch finds its shared and local memory empty.
TEST(SharedMemoryTest, HoldsNothingOfTheBlockBefore) {
  KernelFixture device(absl::StrCat(kHead, R"(
.visible .entry kernel()
{
  .reg .pred %p<2>;
  .reg .b32 %r<4>;
  .shared .align 4 .b8 tile[4];
  mov.u32 %r0, %ctaid.x;
  setp.eq.u32 %p0, %r0, 0;
  @%p0 st.shared.u32 [tile], 1;
  ld.shared.u32 %r1, [tile];
  ret;
})"));
  const LaunchResult result = device.Run("kernel", {}, GridOf(2, 1));
  ASSERT_EQ(result.faults.size(), 1u) << Describe(result.faults);
  EXPECT_EQ(result.faults[0].kind, FaultKind::kUninitializedRead);
  EXPECT_EQ(result.faults[0].block.x, 1u);
}

TEST(PrintTest, TextsComeBlockByBlock) {
  const std::string ptx = absl::StrCat(kHead, R"(
.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
.global .align 1 .b8 format[28] = {98, 37, 100, 32, 37, 115, 32, 37, 53, 46, 50, 102, 32, 37, 108, 108, 117, 32, 37, 99, 32, 37, 120, 37, 37, 10};
.global .align 1 .b8 word[4] = {116, 119, 111};
.visible .entry kernel()
{
  .local .align 8 .b8 arguments[48];
  .reg .b32 %r<4>;
  .reg .b64 %d<8>;
  mov.u32 %r0, %ctaid.x;
  st.local.u32 [arguments], %r0;
  mov.u64 %d1, word;
  cvta.global.u64 %d1, %d1;
  st.local.u64 [arguments+8], %d1;
  st.local.f64 [arguments+16], 0d3ff8000000000000;
  st.local.u64 [arguments+24], 12345678901;
  st.local.u32 [arguments+32], 65;
  st.local.u32 [arguments+36], 255;
  mov.u64 %d2, arguments;
  cvta.local.u64 %d2, %d2;
  mov.u64 %d3, format;
  cvta.global.u64 %d3, %d3;
  {
  .param .b64 a;
  st.param.b64 [a], %d3;
  .param .b64 b;
  st.param.b64 [b], %d2;
  .param .b32 r;
  call.uni (r), vprintf, (a, b);
  }
  ret;
})");
  for (const uint64_t seed : {0, 1, 2}) {
    KernelFixture device(ptx);
    LaunchOptions options = GridOf(3, 1, seed);
    options.threads = 2;
    const LaunchResult result = device.Run("kernel", {}, options);
    EXPECT_TRUE(result.faults.empty()) << Describe(result.faults);
    EXPECT_EQ(result.output,
              "b0 two  1.50 12345678901 A ff%\nb1 two  1.50 12345678901 A ff%\nb2 two  1.50 "
              "12345678901 A ff%\n");
  }
}

// A kernel that stores its thread's number; for launches that are refused.
constexpr char kStore[] = R"(
.visible .entry kernel(.param .u64 out, .param .u32 n)
{
  .reg .b64 %d<2>;
  ld.param.u64 %d0, [out];
  st.global.u32 [%d0], 1;
  ret;
}
.visible .entry limited(.param .u64 out, .param .u32 n) .maxntid 64, 1, 1
{
  ret;
}
.visible .entry shaped(.param .u64 out, .param .u32 n) .reqntid 32, 2, 1
{
  ret;
}
)";

struct BadLaunch {
  const char* name;
  const char* kernel;
  void (*change)(LaunchOptions* options);
  const char* message;
};
constexpr BadLaunch kBadLaunches[] = {
    {"NoBlocks", "kernel", [](LaunchOptions* o) { o->grid.y = 0; }, "1 x 0 x 1"},
    {"TooManyBlocks", "kernel", [](LaunchOptions* o) { o->grid.z = 65536; }, "65536"},
    {"NoThreads", "kernel", [](LaunchOptions* o) { o->block.x = 0; }, "1024 threads"},
    {"TooManyThreads", "kernel",
     [](LaunchOptions* o) {
       o->block = {33, 32, 1};
     },
     "33 x 32"},
    {"TooDeep", "kernel",
     [](LaunchOptions* o) {
       o->block = {1, 1, 65};
     },
     "64"},
    {"SharedMemory", "kernel", [](LaunchOptions* o) { o->dynamic_shared_bytes = 300 << 10; },
     "307200"},
    {"MaximumOfTheKernel", "limited", [](LaunchOptions* o) { o->block.x = 65; }, "at most 64"},
    {"ShapeOfTheKernel", "shaped",
     [](LaunchOptions* o) {
       o->block = {64, 1, 1};
     },
     "another block shape"},
    {"CooperativeBlocks", "kernel",
     [](LaunchOptions* o) {
       o->cooperative = true;
       o->grid.x = 100'000;
     },
     "cooperative"},
    {"CooperativeMemory", "kernel",
     [](LaunchOptions* o) {
       o->cooperative = true;
       o->grid.x = 4096;
       o->dynamic_shared_bytes = 200 << 10;
     },
     "all its blocks at once: 4096 of 12"},
};

// A kernel with much local memory is no bomb.
TEST(ResidentBlocksTest, FitIntoTheHostsMemory) {
  EXPECT_EQ(ResidentBlocks(4 << 10, 1), 32u);
  EXPECT_EQ(ResidentBlocks(100 << 20, 2), 9u);
  EXPECT_EQ(ResidentBlocks(uint64_t{700} << 20, 2), 1u);
}

class BadLaunchTest : public testing::TestWithParam<BadLaunch> {};

TEST_P(BadLaunchTest, IsRefused) {
  KernelFixture device(absl::StrCat(kHead, kStore));
  ASSERT_TRUE(device.load_status().ok()) << device.load_status();
  const uint64_t out = device.Reserve("out", 4);
  LaunchOptions options = GridOf(1, 32);
  if (std::string(GetParam().kernel) == "shaped") options.block.y = 2;
  EXPECT_TRUE(device.TryRun(GetParam().kernel, KernelArguments::Of(out, 1), options).ok());
  GetParam().change(&options);
  const absl::Status status =
      device.TryRun(GetParam().kernel, KernelArguments::Of(out, 1), options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().message));
}
INSTANTIATE_TEST_SUITE_P(Cases, BadLaunchTest, testing::ValuesIn(kBadLaunches),
                         [](const testing::TestParamInfo<BadLaunch>& info) {
                           return std::string(info.param.name);
                         });

TEST(BadLaunchTest, TooFewParameterBytes) {
  KernelFixture device(absl::StrCat(kHead, kStore));
  const absl::Status status =
      device.TryRun("kernel", KernelArguments::Of(uint64_t{0}), GridOf(1, 1)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("12 bytes"));
}

struct RefusedKernel {
  const char* name;
  const char* ptx;
  absl::StatusCode code;
  std::vector<const char*> message;
};

class RefusedKernelTest : public testing::TestWithParam<RefusedKernel> {};

TEST_P(RefusedKernelTest, SaysWhatAndWhere) {
  KernelFixture device(absl::StrCat(kHead, GetParam().ptx));
  const absl::Status status = device.TryRun("kernel", {}, GridOf(1, 1)).status();
  EXPECT_EQ(status.code(), GetParam().code) << status;
  for (const char* const part : GetParam().message)
    EXPECT_THAT(std::string(status.message()), HasSubstr(part));
}

std::vector<RefusedKernel> RefusedKernels() {
  constexpr auto kUnimplemented = absl::StatusCode::kUnimplemented;
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  return {
      {"MissingKernel",
       ".visible .entry first()\n{\nret;\n}\n.visible .entry second()\n{\nret;\n}",
       absl::StatusCode::kNotFound,
       {"no kernel kernel", "first, second"}},
      {"UnknownOpcode",
       ".visible .entry kernel()\n{\n.reg .b32 %r<2>;\nfrobnicate.u32 %r0, %r1;\nret;\n}",
       kUnimplemented,
       {"line 7", "kernel kernel", "frobnicate.u32"}},
      {"UnknownModifier",
       ".visible .entry kernel()\n{\n.reg .b32 %r<2>;\nadd.odd.u32 %r0, %r1, %r1;\nret;\n}",
       kUnimplemented,
       {"line 7", "kernel kernel", "add.odd.u32"}},
      {"Recursion",
       ".func f()\n{\ncall.uni g, ();\nret;\n}\n.func g()\n{\ncall.uni f, ();\nret;\n}\n"
       ".visible .entry kernel()\n{\ncall.uni f, ();\nret;\n}",
       kUnimplemented,
       {"calls itself"}},
      {"FunctionWithoutBody",
       ".extern .func other();\n.visible .entry kernel()\n{\ncall.uni other, ();\nret;\n}",
       kUnimplemented,
       {"other", "no body"}},
      {"WriteOfAParameter",
       ".visible .entry kernel(.param .u32 n)\n{\nst.param.u32 [n], 1;\nret;\n}",
       kInvalid,
       {"line 6", "writes a parameter"}},
      {"ReadPastAParameter",
       ".visible .entry kernel(.param .u32 n)\n{\n.reg .b64 %d<1>;\nld.param.u64 %d0, "
       "[n];\nret;\n}",
       kInvalid,
       {"line 7", "accesses 8 bytes at 0 of n, which has 4"}},
      {"WrongWidth",
       ".visible .entry kernel()\n{\n.reg .b64 %d<1>;\nadd.u32 %d0, %d0, 1;\nret;\n}",
       kInvalid,
       {"line 7", "64 bits"}},
      {"LabelNowhere", ".visible .entry kernel()\n{\nbra NOWHERE;\n}", kInvalid, {"NOWHERE"}},
      {"UnknownSpecialRegister",
       ".visible .entry kernel()\n{\n.reg .b32 %r<1>;\nmov.u32 %r0, %pm0;\nret;\n}",
       absl::StatusCode::kUnimplemented,
       {"%pm0"}},
      {"TooMuchLocalMemory",
       ".visible .entry kernel()\n{\n.local .b8 big[600000];\n.reg .b32 %r<1>;\nld.local.u32 %r0, "
       "[big];\nret;\n}",
       absl::StatusCode::kResourceExhausted,
       {"local memory"}},
  };
}
INSTANTIATE_TEST_SUITE_P(Cases, RefusedKernelTest, testing::ValuesIn(RefusedKernels()),
                         [](const testing::TestParamInfo<RefusedKernel>& info) {
                           return std::string(info.param.name);
                         });

// Faults that a device survives are counted, one entry an operation.
TEST(FaultLogTest, RepeatedFaultsCount) {
  KernelFixture device(absl::StrCat(kHead, R"(
.visible .entry kernel(.param .u64 in)
{
  .reg .b32 %r<4>;
  .reg .b64 %d<4>;
  ld.param.u64 %d0, [in];
  ld.global.u32 %r0, [%d0];
  ld.global.u32 %r1, [%d0+4];
  ret;
})"));
  const uint64_t in = device.Reserve("in", 8);
  const LaunchResult result = device.Run("kernel", KernelArguments::Of(in), GridOf(4, 64));
  ASSERT_EQ(result.faults.size(), 2u) << Describe(result.faults);
  EXPECT_FALSE(result.stopped);
  for (const Fault& fault : result.faults) {
    EXPECT_EQ(fault.kind, FaultKind::kUninitializedRead);
    EXPECT_EQ(fault.count, 256u);
    EXPECT_EQ(fault.bytes, 4u);
    EXPECT_EQ(fault.space, Space::kGlobal);
  }
  EXPECT_EQ(result.faults[1].address, in + 4);
  EXPECT_THAT(result.faults[1].message, HasSubstr("offset 4 of in"));
}

TEST(FaultLogTest, SourceLineComesFromLoc) {
  KernelFixture device(absl::StrCat(kHead, R"(.file 1 "scale.cu"
.visible .entry kernel()
{
  .loc 1 12 3
  trap;
})"));
  const LaunchResult result = device.Run("kernel", {}, GridOf(1, 1));
  ASSERT_EQ(result.faults.size(), 1u);
  EXPECT_TRUE(result.stopped);
  EXPECT_EQ(result.faults[0].file, "scale.cu");
  EXPECT_EQ(result.faults[0].location.line, 12);
}

}  // namespace
}  // namespace assay::emulator
