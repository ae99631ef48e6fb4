// Faults in floods: one for each kind and operation, and an exact count.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "emulator/testing/kernel_fixture.h"
#include "gtest/gtest.h"

namespace assay::emulator {
namespace {

constexpr uint32_t kTrips = 50;

// Every thread does `body` so many times; %d1 is the address of its word in `words`, nobody has
// written `empty`.
std::string KernelText(const char* body) {
  return absl::StrCat(R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry kernel(.param .u64 words, .param .u64 empty)
{
  .reg .pred %p<4>;
  .reg .b32 %r<16>;
  .reg .b64 %d<8>;
  .shared .align 4 .b8 tile[4096];
  ld.param.u64 %d0, [words];
  ld.param.u64 %d2, [empty];
  mov.u32 %r0, %tid.x;
  mul.wide.u32 %d1, %r0, 4;
  add.u64 %d1, %d0, %d1;
  mov.u32 %r1, 0;
LOOP:
)",
                      body, R"(
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p0, %r1, )",
                      kTrips, R"(;
  @%p0 bra LOOP;
  ret;
}
)");
}

struct FloodCase {
  const char* name;
  const char* body;
  FaultKind kind;
  uint64_t each;  // faults of a thread and trip
};

constexpr FloodCase kCases[] = {
    {"UninitializedGlobal", "ld.global.u32 %r2, [%d2];", FaultKind::kUninitializedRead, 1},
    {"UninitializedPair", "ld.global.v2.u32 {%r2, %r3}, [%d2];", FaultKind::kUninitializedRead, 1},
    {"UninitializedShared", "ld.shared.u32 %r2, [tile+64];", FaultKind::kUninitializedRead, 1},
    {"AbsentLane", "shfl.sync.idx.b32 %r2, %r0, 1, 31, 1;", FaultKind::kAbsentLane, 0},
};

class FaultFloodTest : public testing::TestWithParam<FloodCase> {};

TEST_P(FaultFloodTest, IsOneFaultWithItsCount) {
  constexpr uint32_t kBlocks = 6;
  constexpr uint32_t kThreads = 64;
  const FloodCase& c = GetParam();
  for (const int threads : {1, 2}) {
    KernelFixture device(KernelText(c.body));
    ASSERT_TRUE(device.load_status().ok()) << device.load_status();
    const uint64_t words = device.Put("words", std::vector<uint32_t>(kThreads, 0));
    const uint64_t empty = device.Reserve("empty", 64);
    LaunchOptions options = GridOf(kBlocks, kThreads);
    options.threads = threads;
    const LaunchResult result = device.Run("kernel", KernelArguments::Of(words, empty), options);
    EXPECT_FALSE(result.stopped);
    ASSERT_EQ(result.faults.size(), 1u) << Describe(result.faults);
    EXPECT_EQ(result.faults[0].kind, c.kind);
    if (c.each != 0) {
      EXPECT_EQ(result.faults[0].count, c.each * kBlocks * kThreads * kTrips) << threads;
    } else {
      EXPECT_GE(result.faults[0].count, kBlocks * kTrips) << threads;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Cases, FaultFloodTest, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<FloodCase>& info) {
                           return std::string(info.param.name);
                         });

}  // namespace
}  // namespace assay::emulator
