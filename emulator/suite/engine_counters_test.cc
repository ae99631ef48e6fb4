// Counts of a launch on kernels where they can be counted by hand.
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "emulator/testing/kernel_fixture.h"
#include "gtest/gtest.h"

namespace assay::emulator {
namespace {

// %r0 is the thread, %r3 its number in the grid, %d0 a buffer of 64 KiB, %d1 the address of the
// thread's word in it; the tile has 16 KiB and is written before where a case reads it.
constexpr char kBefore[] = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry kernel(.param .u64 buffer)
{
  .reg .pred %p<4>;
  .reg .b16 %h<8>;
  .reg .b32 %r<24>;
  .reg .f32 %f<8>;
  .reg .f64 %g<8>;
  .reg .b64 %d<8>;
  .shared .align 16 .b8 tile[16384];
  .local .align 8 .b8 array[16];
  ld.param.u64 %d0, [buffer];
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mad.lo.u32 %r3, %r1, %r2, %r0;
  mul.wide.u32 %d1, %r3, 4;
  add.u64 %d1, %d0, %d1;
)";
constexpr uint64_t kOpsBefore = 7;

LaunchResult Launched(const std::string& body, uint32_t blocks, uint32_t threads) {
  KernelFixture device(absl::StrCat(kBefore, body, "\n  ret;\n}\n"));
  EXPECT_TRUE(device.load_status().ok()) << device.load_status();
  const uint64_t buffer = device.Put("buffer", std::vector<uint32_t>(16384, 0));
  LaunchResult result = device.Run("kernel", KernelArguments::Of(buffer), GridOf(blocks, threads));
  EXPECT_TRUE(result.faults.empty()) << Describe(result.faults);
  return result;
}

Counters Count(const std::string& body, uint32_t blocks, uint32_t threads) {
  return Launched(body, blocks, threads).counters;
}

struct CounterCase {
  const char* name;
  uint32_t blocks;
  uint32_t threads;
  const char* body;
  uint64_t Counters::*counter;
  uint64_t expected;
};

constexpr char kFused[] =
    "ld.global.f32 %f0, [%d1]; fma.rn.f32 %f1, %f0, %f0, %f0; add.f32 %f1, %f1, %f0; neg.f32 %f1, "
    "%f1; st.global.f32 [%d1], %f1;";
constexpr char kEveryOther[] =
    "mul.wide.u32 %d2, %r3, 8; add.u64 %d2, %d0, %d2; ld.global.u32 %r4, [%d2];";
constexpr char kShifted[] = "ld.global.u32 %r4, [%d1+4];";
constexpr char kSame[] = "ld.global.u32 %r4, [%d0+64];";
constexpr char kPairs[] =
    "mul.wide.u32 %d2, %r3, 8; add.u64 %d2, %d0, %d2; ld.global.v2.u32 {%r4, %r5}, [%d2];";
constexpr char kQuads[] =
    "mul.wide.u32 %d2, %r3, 16; add.u64 %d2, %d0, %d2; st.global.v4.u32 [%d2], {%r0, %r0, %r0, "
    "%r0};";
constexpr char kFarApart[] =
    "mul.wide.u32 %d2, %r3, 256; add.u64 %d2, %d0, %d2; ld.global.u32 %r4, [%d2];";
constexpr char kSomeLanes[] = "setp.lt.u32 %p0, %r0, 10; @%p0 ld.global.u32 %r4, [%d1];";
constexpr char kBytes[] = "cvt.u64.u32 %d2, %r3; add.u64 %d2, %d0, %d2; ld.global.u8 %h0, [%d2];";

constexpr CounterCase kCases[] = {
    {"FlopsOfFusedAndPlain", 2, 64, kFused, &Counters::f32_flops, 128 * 3},
    {"LoadedBytes", 2, 64, kFused, &Counters::global_load_bytes, 128 * 4},
    {"StoredBytes", 2, 64, kFused, &Counters::global_store_bytes, 128 * 4},
    {"Sectors", 2, 64, kFused, &Counters::global_sectors, 2 * 4 * 4},
    {"SectorsLeast", 2, 64, kFused, &Counters::global_sectors_least, 2 * 4 * 4},
    {"WarpInstructions", 2, 64, kFused, &Counters::warp_instructions, 4 * (kOpsBefore + 5 + 1)},
    {"ThreadInstructions", 2, 48, kFused, &Counters::thread_instructions,
     96 * (kOpsBefore + 5 + 1)},
    {"SectorsOfEveryOtherWord", 1, 32, kEveryOther, &Counters::global_sectors, 8},
    {"SectorsLeastOfEveryOtherWord", 1, 32, kEveryOther, &Counters::global_sectors_least, 4},
    {"SectorsOfShiftedWords", 1, 64, kShifted, &Counters::global_sectors, 2 * 5},
    {"SectorsOfOneWord", 1, 64, kSame, &Counters::global_sectors, 2},
    {"BytesOfOneWord", 1, 64, kSame, &Counters::global_load_bytes, 64 * 4},
    {"SectorsOfPairs", 1, 32, kPairs, &Counters::global_sectors, 8},
    {"BytesOfPairs", 1, 32, kPairs, &Counters::global_load_bytes, 256},
    {"SectorsOfQuads", 1, 32, kQuads, &Counters::global_sectors, 16},
    {"SectorsOfFarWords", 1, 64, kFarApart, &Counters::global_sectors, 64},
    {"SectorsLeastOfFarWords", 1, 64, kFarApart, &Counters::global_sectors_least, 8},
    {"SectorsOfSomeLanes", 1, 64, kSomeLanes, &Counters::global_sectors, 2},
    {"BytesOfSomeLanes", 1, 64, kSomeLanes, &Counters::global_load_bytes, 40},
    {"SectorsOfBytes", 1, 64, kBytes, &Counters::global_sectors, 2},
    {"LoadedSingleBytes", 1, 64, kBytes, &Counters::global_load_bytes, 64},
    {"F64Flops", 1, 32,
     "mov.f64 %g0, 0d3ff0000000000000; fma.rn.f64 %g1, %g0, %g0, %g0; mul.f64 %g1, %g1, %g0;",
     &Counters::f64_flops, 96},
    {"F16Flops", 1, 32, "mov.b32 %r4, 0; fma.rn.f16x2 %r5, %r4, %r4, %r4; add.f16x2 %r5, %r5, %r4;",
     &Counters::f16_flops, 32 * 6},
    {"F16ScalarFlops", 1, 32,
     "mov.b16 %h0, 0; fma.rn.f16 %h1, %h0, %h0, %h0; mul.f16 %h1, %h1, %h0;", &Counters::f16_flops,
     32 * 3},
    {"SpecialOperations", 1, 40,
     "mov.f32 %f0, 0f3f800000; ex2.approx.f32 %f1, %f0; rsqrt.approx.f32 %f1, %f1; sin.approx.f32 "
     "%f1, %f1;",
     &Counters::special_operations, 120},
    {"IntegerOperations", 1, 32,
     "add.u32 %r4, %r0, 1; mad.lo.u32 %r4, %r4, %r4, %r4; and.b32 %r5, %r4, 3;",
     &Counters::integer_operations, 32 * (3 + 3)},  // with mad, mul.wide and add.u64 before
    {"TensorFlops", 1, 64,
     "mov.b32 %r4, 0; mov.f32 %f0, 0f00000000;"
     "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3}, {%r4, %r4, %r4, "
     "%r4}, {%r4, %r4}, {%f0, %f0, %f0, %f0};",
     &Counters::tensor_flops, 2 * 2 * 16 * 8 * 16},
    {"Atomics", 2, 48, "red.global.add.u32 [%d0], 1; atom.global.max.u32 %r4, [%d0+4], %r0;",
     &Counters::atomic_operations, 192},
    {"LocalBytes", 1, 48,
     "st.local.u32 [array], %r0; st.local.u64 [array+8], %d0; ld.local.u32 %r4, [array];",
     &Counters::local_bytes, 48 * 16},
    {"BarrierArrivals", 3, 96, "bar.sync 0; bar.sync 0;", &Counters::barriers, 3 * 3 * 2},
    {"UniformBranches", 1, 96,
     "setp.ge.u32 %p0, %r0, 32; @%p0 bra OVER; add.u32 %r4, %r0, 1;\nOVER:",
     &Counters::divergent_branches, 0},
    {"DivergentBranches", 1, 96,
     "setp.ge.u32 %p0, %r0, 40; @%p0 bra OVER; add.u32 %r4, %r0, 1;\nOVER:",
     &Counters::divergent_branches, 1},
    {"DivergentLoop", 1, 32,
     "mov.u32 %r4, 0;\nLOOP: add.u32 %r4, %r4, 1; setp.lt.u32 %p0, %r4, %r0; @%p0 bra LOOP;",
     &Counters::divergent_branches, 30},
    {"LoopBranches", 1, 64,
     "mov.u32 %r4, 0;\nLOOP: add.u32 %r4, %r4, 1; setp.lt.u32 %p0, %r4, 10; @%p0 bra LOOP;",
     &Counters::branches, 2 * 9},
    {"IndexedDivergentBranches", 1, 64,
     "and.b32 %r4, %r0, 1;\nTARGETS: .branchtargets A, B;\nbrx.idx %r4, TARGETS;\nA: bra C;\nB: "
     "bra C;\nC:",
     &Counters::divergent_branches, 2},
};

class EngineCountersTest : public testing::TestWithParam<CounterCase> {};

TEST_P(EngineCountersTest, IsExact) {
  const CounterCase& c = GetParam();
  EXPECT_EQ(Count(c.body, c.blocks, c.threads).*c.counter, c.expected);
}
INSTANTIATE_TEST_SUITE_P(Cases, EngineCountersTest, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<CounterCase>& info) {
                           return std::string(info.param.name);
                         });

// Stores and loads of `bytes` a lane at lane * stride; conflicts of one warp.
struct BankCase {
  const char* name;
  const char* access;  // %r5 is the lane's address
  uint32_t stride;
  uint32_t wrap;  // of the lane's number
  uint64_t conflicts;
};
constexpr char kStore4[] = "st.shared.u32 [%r5], %r0;";
constexpr BankCase kBanks[] = {
    {"Consecutive", kStore4, 4, 32, 0},
    {"EveryOtherWord", kStore4, 8, 32, 1},
    {"EveryFourthWord", kStore4, 16, 32, 3},
    {"ColumnOf32", kStore4, 128, 32, 31},
    {"PaddedColumn", kStore4, 132, 32, 0},
    {"OddStride", kStore4, 12, 32, 0},
    {"PairsInOrder", "st.shared.v2.u32 [%r5], {%r0, %r0};", 8, 32, 0},
    {"PairsFarApart", "st.shared.v2.u32 [%r5], {%r0, %r0};", 128, 32, 2 * 15},
    {"QuadsInOrder", "st.shared.v4.u32 [%r5], {%r0, %r0, %r0, %r0};", 16, 32, 0},
    {"QuadsFarApart", "st.shared.v4.u32 [%r5], {%r0, %r0, %r0, %r0};", 128, 32, 4 * 7},
    {"BytesInOrder", "st.shared.u8 [%r5], %h0;", 1, 32, 0},
    {"HalvesInOrder", "st.shared.u16 [%r5], %h0;", 2, 32, 0},
    {"ReadByAll", "st.shared.u32 [tile], 7; bar.warp.sync -1; ld.shared.u32 %r7, [%r5];", 0, 32, 0},
    {"ReadByEight", "st.shared.u32 [%r6], 7; bar.warp.sync -1; ld.shared.u32 %r7, [%r5];", 4, 4, 0},
};

class BankConflictTest : public testing::TestWithParam<BankCase> {};

TEST_P(BankConflictTest, IsExact) {
  const BankCase& c = GetParam();
  const std::string body = absl::StrCat("mov.b16 %h0, 1; mov.u32 %r4, tile; rem.u32 %r6, %r0, ",
                                        c.wrap, "; mad.lo.u32 %r5, %r6, ", c.stride,
                                        ", %r4; mad.lo.u32 %r6, %r0, 4, %r4;\n", c.access);
  EXPECT_EQ(Count(body, 1, 32).shared_bank_conflicts, c.conflicts);
  EXPECT_EQ(Count(body, 3, 32).shared_bank_conflicts, 3 * c.conflicts);
}
INSTANTIATE_TEST_SUITE_P(Cases, BankConflictTest, testing::ValuesIn(kBanks),
                         [](const testing::TestParamInfo<BankCase>& info) {
                           return std::string(info.param.name);
                         });

TEST(EngineCountersTest, SharedBytesAndAccesses) {
  const Counters counters = Count(
      "mov.u32 %r4, tile; mad.lo.u32 %r5, %r0, 8, %r4; st.shared.v2.u32 [%r5], {%r0, %r0}; "
      "ld.shared.u32 %r6, [%r5]; "
      "ld.shared.u32 %r7, [%r5+4];",
      2, 48);
  EXPECT_EQ(counters.shared_store_bytes, 96u * 8);
  EXPECT_EQ(counters.shared_load_bytes, 96u * 8);
  EXPECT_EQ(counters.shared_accesses, 2u * 2 * 3);
}

// A lane that fails a check sends the whole access lane by lane; what is right still counts once.
TEST(EngineCountersTest, AccessesWithAFaultCountTheSame) {
  KernelFixture device(absl::StrCat(kBefore, "ld.global.u32 %r4, [%d1];\nret;\n}\n"));
  const uint64_t buffer = device.Put("buffer", std::vector<uint32_t>(16384, 0));
  ASSERT_TRUE(device.memory().SetInitialized(buffer + 12, 4, false).ok());
  const LaunchResult result = device.Run("kernel", KernelArguments::Of(buffer), GridOf(1, 32));
  EXPECT_EQ(result.faults.size(), 1u);
  EXPECT_EQ(result.counters.global_load_bytes, 128u);
}

}  // namespace
}  // namespace assay::emulator
