// Control flow of the engine: divergence, calls, barriers, special registers. Each kernel leaves
// one number a thread.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "emulator/testing/kernel_fixture.h"
#include "gtest/gtest.h"

namespace assay::emulator {
namespace {

// `body` leaves the result in %r10; %r0 is the thread's number in its block.
struct ControlCase {
  const char* name;
  uint32_t blocks;
  uint32_t threads;
  const char* functions;
  const char* body;
  uint32_t (*expected)(uint32_t thread, uint32_t block);
};

std::string KernelText(const ControlCase& c) {
  return absl::StrCat(".version 8.0\n.target sm_80\n.address_size 64\n", c.functions, R"(
.visible .entry kernel(.param .u64 out)
{
  .reg .pred %p<8>;
  .reg .b32 %r<32>;
  .reg .b64 %d<16>;
  .shared .align 8 .b8 tile[4096];
  ld.param.u64 %d0, [out];
  mov.u32 %r0, %tid.x;
  mov.u32 %r10, 0;
)",
                      c.body, R"(
  mov.u32 %r30, %ctaid.x;
  mov.u32 %r31, %ntid.x;
  mad.lo.u32 %r31, %r30, %r31, %r0;
  mul.wide.u32 %d15, %r31, 4;
  add.u64 %d15, %d0, %d15;
  st.global.u32 [%d15], %r10;
  ret;
}
)");
}

constexpr char kSquare[] = R"(
.func (.param .b32 result) square(.param .b32 x)
{
  .reg .b32 %a<4>;
  ld.param.b32 %a0, [x];
  mul.lo.u32 %a1, %a0, %a0;
  st.param.b32 [result], %a1;
  ret;
}
)";

// Returns early for small arguments, and calls another function.
constexpr char kNested[] = R"(
.func (.param .b32 result) square(.param .b32 x)
{
  .reg .b32 %a<4>;
  ld.param.b32 %a0, [x];
  mul.lo.u32 %a1, %a0, %a0;
  st.param.b32 [result], %a1;
  ret;
}
.func (.param .b64 result) mixed(.param .b32 x, .param .align 8 .b8 pair[16])
{
  .reg .pred %q<2>;
  .reg .b32 %a<4>;
  .reg .b64 %b<6>;
  ld.param.b32 %a0, [x];
  setp.lt.u32 %q0, %a0, 10;
  mov.b64 %b0, 7;
  st.param.b64 [result], %b0;
  @%q0 ret;
  {
  .param .b32 in;
  st.param.b32 [in], %a0;
  .param .b32 out;
  call.uni (out), square, (in);
  ld.param.b32 %a1, [out];
  }
  ld.param.b64 %b1, [pair];
  ld.param.b64 %b2, [pair+8];
  add.u64 %b3, %b1, %b2;
  cvt.u64.u32 %b4, %a1;
  add.u64 %b4, %b4, %b3;
  st.param.b64 [result], %b4;
  ret;
}
)";

constexpr ControlCase kCases[] = {
    {"NestedIfsMeetAgain", 2, 64, "", R"(
  and.b32 %r1, %r0, 1;
  setp.eq.u32 %p0, %r1, 0;
  @%p0 bra EVEN;
  add.u32 %r10, %r10, 1;
  and.b32 %r1, %r0, 2;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra JOIN;
  add.u32 %r10, %r10, 10;
  and.b32 %r1, %r0, 4;
  setp.eq.u32 %p2, %r1, 0;
  @%p2 bra FOUR;
  add.u32 %r10, %r10, 100;
  bra JOIN;
FOUR:
  add.u32 %r10, %r10, 200;
  bra JOIN;
EVEN:
  add.u32 %r10, %r10, 1000;
JOIN:
  bar.sync 0;
  activemask.b32 %r2;
  popc.b32 %r2, %r2;
  mad.lo.u32 %r10, %r2, 10000, %r10;
)",
     [](uint32_t t, uint32_t) -> uint32_t {
       if (t % 2 == 0) return 321000;
       return 320001 + ((t & 2) == 0 ? 0 : (t & 4) == 0 ? 210 : 110);
     }},
    {"LoopsOfDifferentLength", 1, 96, "", R"(
  mov.u32 %r1, 0;
LOOP:
  setp.ge.u32 %p0, %r1, %r0;
  @%p0 bra DONE;
  add.u32 %r10, %r10, %r1;
  add.u32 %r1, %r1, 1;
  bra LOOP;
DONE:
  bar.sync 0;
)",
     [](uint32_t t, uint32_t) -> uint32_t { return t == 0 ? 0 : t * (t - 1) / 2; }},
    {"NestedLoopsWithBreakAndContinue", 1, 32, "", R"(
  mov.u32 %r1, 0;
OUTER:
  add.u32 %r1, %r1, 1;
  setp.gt.u32 %p0, %r1, 6;
  @%p0 bra DONE;
  and.b32 %r2, %r1, 1;
  setp.eq.u32 %p1, %r2, 0;
  @%p1 bra OUTER;
  mov.u32 %r3, 0;
INNER:
  add.u32 %r3, %r3, 1;
  setp.gt.u32 %p2, %r3, %r0;
  @%p2 bra OUTER;
  add.u32 %r10, %r10, %r1;
  setp.lt.u32 %p3, %r3, 4;
  @%p3 bra INNER;
  bra OUTER;
DONE:
  bar.warp.sync -1;
)",
     [](uint32_t t, uint32_t) -> uint32_t { return (1 + 3 + 5) * std::min<uint32_t>(t, 4); }},
    {"LoopWithTwoEntries", 1, 32, "", R"(
  mov.u32 %r1, 0;
  and.b32 %r2, %r0, 1;
  setp.eq.u32 %p0, %r2, 0;
  @%p0 bra SECOND;
FIRST:
  add.u32 %r10, %r10, 1;
SECOND:
  add.u32 %r10, %r10, 100;
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p1, %r1, 3;
  @%p1 bra FIRST;
)",
     [](uint32_t t, uint32_t) -> uint32_t { return t % 2 == 0 ? 302 : 303; }},
    {"IndexedBranch", 1, 64, "", R"(
  and.b32 %r1, %r0, 3;
TARGETS: .branchtargets A, B, C, A;
  brx.idx %r1, TARGETS;
A:
  mov.u32 %r10, 10;
  bra JOIN;
B:
  mov.u32 %r10, 20;
  bra JOIN;
C:
  mov.u32 %r10, 30;
JOIN:
  bar.sync 0;
)",
     [](uint32_t t, uint32_t) -> uint32_t { return t % 4 == 1   ? 20
                                                   : t % 4 == 2 ? 30
                                                                : 10; }},
    {"SomeLanesLeaveALoopForGood", 1, 64, "", R"(
  mov.u32 %r1, 0;
LOOP:
  setp.eq.u32 %p0, %r1, %r0;
  mov.u32 %r10, %r1;
  @%p0 bra STORE;
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p1, %r1, 50;
  @%p1 bra LOOP;
  mov.u32 %r10, 99;
STORE:
)",
     [](uint32_t t, uint32_t) -> uint32_t { return t < 50 ? t : 99; }},
    // As compilers write a lane that returns early: its store is the others'.
    {"SomeLanesGoAroundABarrierToTheirEnd", 1, 64, "", R"(
  and.b32 %r1, %r0, 16;
  setp.ne.u32 %p0, %r1, 0;
  mov.u32 %r10, 7;
  @%p0 bra STORE;
  bar.sync 0;
  mov.u32 %r10, 9;
STORE:
)",
     [](uint32_t t, uint32_t) -> uint32_t { return (t & 16) != 0 ? 7 : 9; }},
    {"CallFromAllLanes", 1, 64, kSquare, R"(
  {
  .param .b32 in;
  st.param.b32 [in], %r0;
  .param .b32 out;
  call.uni (out), square, (in);
  ld.param.b32 %r10, [out];
  }
)",
     [](uint32_t t, uint32_t) -> uint32_t { return t * t; }},
    {"CallFromSomeLanesAndTwoPlaces", 1, 64, kSquare, R"(
  and.b32 %r1, %r0, 1;
  setp.eq.u32 %p0, %r1, 0;
  @%p0 bra EVEN;
  {
  .param .b32 in;
  st.param.b32 [in], %r0;
  .param .b32 out;
  call (out), square, (in);
  ld.param.b32 %r10, [out];
  }
  bra JOIN;
EVEN:
  add.u32 %r2, %r0, 100;
  {
  .param .b32 in;
  st.param.b32 [in], %r2;
  .param .b32 out;
  call (out), square, (in);
  ld.param.b32 %r10, [out];
  }
JOIN:
  bar.sync 0;
)",
     [](uint32_t t, uint32_t) -> uint32_t { return t % 2 == 0 ? (t + 100) * (t + 100) : t * t; }},
    {"GuardedCall", 1, 32, kSquare, R"(
  setp.lt.u32 %p0, %r0, 5;
  {
  .param .b32 in;
  st.param.b32 [in], %r0;
  .param .b32 out;
  st.param.b32 [out], 77;
  @%p0 call (out), square, (in);
  ld.param.b32 %r10, [out];
  }
)",
     [](uint32_t t, uint32_t) -> uint32_t { return t < 5 ? t * t : 77; }},
    {"NestedCallWithEarlyReturn", 1, 32, kNested, R"(
  mov.b64 %d1, 1000;
  mov.b64 %d2, 5;
  {
  .param .b32 in;
  st.param.b32 [in], %r0;
  .param .align 8 .b8 pair[16];
  st.param.b64 [pair], %d1;
  st.param.b64 [pair+8], %d2;
  .param .b64 out;
  call (out), mixed, (in, pair);
  ld.param.b64 %d3, [out];
  }
  cvt.u32.u64 %r10, %d3;
  bar.sync 0;
)",
     [](uint32_t t, uint32_t) -> uint32_t { return t < 10 ? 7 : t * t + 1005; }},
    {"SpecialRegisters", 2, 48, "", R"(
  mov.u32 %r1, %laneid;
  mov.u32 %r2, %warpid;
  mov.u32 %r3, %nwarpid;
  mov.u32 %r4, %ctaid.x;
  mov.u32 %r5, %nctaid.x;
  mov.u32 %r6, %lanemask_lt;
  popc.b32 %r6, %r6;
  mov.u32 %r7, %lanemask_ge;
  popc.b32 %r7, %r7;
  mad.lo.u32 %r10, %r2, 100, %r1;
  mad.lo.u32 %r10, %r3, 1000, %r10;
  mad.lo.u32 %r10, %r4, 10000, %r10;
  mad.lo.u32 %r10, %r5, 100000, %r10;
  sub.u32 %r6, %r6, %r1;
  add.u32 %r7, %r7, %r1;
  sub.u32 %r7, %r7, 32;
  or.b32 %r6, %r6, %r7;
  mad.lo.u32 %r10, %r6, 10000000, %r10;
)",
     [](uint32_t t, uint32_t b) -> uint32_t {
       return t % 32 + t / 32 * 100 + 2000 + b * 10000 + 200000;
     }},
    {"BarrierReductions", 1, 64, "", R"(
  setp.lt.u32 %p0, %r0, 40;
  bar.red.popc.u32 %r1, 0, %p0;
  bar.red.and.pred %p1, 0, %p0;
  bar.red.or.pred %p2, 0, !%p0;
  setp.lt.u32 %p3, %r0, 64;
  bar.red.and.pred %p4, 0, %p3;
  selp.u32 %r2, 100, 0, %p1;
  selp.u32 %r3, 1000, 0, %p2;
  selp.u32 %r4, 10000, 0, %p4;
  add.u32 %r10, %r1, %r2;
  add.u32 %r10, %r10, %r3;
  add.u32 %r10, %r10, %r4;
)",
     [](uint32_t, uint32_t) -> uint32_t { return 11040; }},
    {"BarrierReductionOfAPartialWarp", 1, 40, "", R"(
  setp.lt.u32 %p0, %r0, 64;
  bar.red.popc.u32 %r1, 0, %p0;
  bar.red.and.pred %p1, 1, 64, %p0;
  selp.u32 %r2, 100, 0, %p1;
  add.u32 %r10, %r1, %r2;
)",
     [](uint32_t, uint32_t) -> uint32_t { return 140; }},
    {"LanesReachAnUnalignedBarrierOneByOne", 1, 64, "", R"(
  shl.b32 %r1, %r0, 2;
  mov.u32 %r2, tile;
  add.u32 %r1, %r1, %r2;
  st.shared.u32 [%r1], %r0;
  and.b32 %r3, %r0, 3;
TARGETS: .branchtargets A, B, C, C;
  brx.idx %r3, TARGETS;
A:
  barrier.sync 1, 64;
  bra JOIN;
B:
  barrier.sync 1, 64;
  bra JOIN;
C:
  barrier.sync 1, 64;
JOIN:
  sub.u32 %r4, 63, %r0;
  shl.b32 %r4, %r4, 2;
  add.u32 %r4, %r4, %r2;
  ld.shared.u32 %r10, [%r4];
)",
     [](uint32_t t, uint32_t) -> uint32_t { return 63 - t; }},
    {"ProducerArrivesAndConsumerWaits", 1, 64, "", R"(
  mov.u32 %r2, tile;
  shl.b32 %r1, %r0, 2;
  add.u32 %r1, %r1, %r2;
  setp.lt.u32 %p0, %r0, 32;
  @%p0 bra CONSUME;
  st.shared.u32 [%r1], %r0;
  bar.arrive 3, 64;
  bra JOIN;
CONSUME:
  bar.sync 3, 64;
  ld.shared.u32 %r10, [%r1+128];
JOIN:
)",
     [](uint32_t t, uint32_t) -> uint32_t { return t < 32 ? t + 32 : 0; }},
    {"LanesOfAWarpTakeTurns", 1, 32, "", R"(
  mov.u32 %r2, 0;
  setp.eq.u32 %p0, %r0, 0;
  @%p0 st.shared.u32 [tile], 0;
  bar.warp.sync -1;
WAIT:
  ld.volatile.shared.u32 %r3, [tile];
  setp.ne.u32 %p1, %r3, %r0;
  @%p1 bra WAIT;
  mad.lo.u32 %r10, %r3, 2, 1;
  add.u32 %r3, %r3, 1;
  st.volatile.shared.u32 [tile], %r3;
)",
     [](uint32_t t, uint32_t) -> uint32_t { return 2 * t + 1; }},
    {"GuardedOperationsKeepTheRest", 1, 32, "", R"(
  mov.u32 %r10, 5;
  setp.lt.u32 %p0, %r0, 7;
  setp.ge.and.u32 %p1, %r0, 3, %p0;
  @%p1 mov.u32 %r10, 6;
  @!%p0 mov.u32 %r10, 8;
)",
     [](uint32_t t, uint32_t) -> uint32_t { return t >= 7   ? 8
                                                   : t >= 3 ? 6
                                                            : 5; }},
};

class EngineControlTest : public testing::TestWithParam<ControlCase> {};

TEST_P(EngineControlTest, EveryThreadGetsItsResult) {
  const ControlCase& c = GetParam();
  for (const uint64_t seed : {0, 1, 2, 3}) {
    for (const int threads : {1, 2}) {
      SCOPED_TRACE(absl::StrCat("seed ", seed, ", host threads ", threads));
      KernelFixture device(KernelText(c));
      ASSERT_TRUE(device.load_status().ok()) << device.load_status();
      const uint32_t count = c.blocks * c.threads;
      const uint64_t out = device.Reserve("out", count * sizeof(uint32_t));
      LaunchOptions options = GridOf(c.blocks, c.threads, seed);
      options.threads = threads;
      const LaunchResult result = device.Run("kernel", KernelArguments::Of(out), options);
      ASSERT_TRUE(result.faults.empty()) << Describe(result.faults);
      const auto values = device.Get<uint32_t>(out, count);
      for (uint32_t i = 0; i < count; ++i) {
        ASSERT_EQ(values[i], c.expected(i % c.threads, i / c.threads))
            << "thread " << i % c.threads << " of block " << i / c.threads;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, EngineControlTest, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<ControlCase>& info) {
                           return std::string(info.param.name);
                         });

// Blocks and grids of three dimensions: x runs fastest.
TEST(EngineShapeTest, ThreadsOfThreeDimensions) {
  KernelFixture device(R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry kernel(.param .u64 out)
{
  .reg .b32 %r<16>;
  .reg .b64 %d<4>;
  ld.param.u64 %d0, [out];
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, %tid.y;
  mov.u32 %r2, %tid.z;
  mov.u32 %r3, %ctaid.y;
  mov.u32 %r4, %ctaid.z;
  mad.lo.u32 %r5, %r2, 3, %r1;
  mad.lo.u32 %r5, %r5, 5, %r0;
  mad.lo.u32 %r6, %r4, 2, %r3;
  mad.lo.u32 %r7, %r6, 60, %r5;
  mul.wide.u32 %d1, %r7, 4;
  add.u64 %d1, %d0, %d1;
  mad.lo.u32 %r8, %r2, 10, %r1;
  mad.lo.u32 %r8, %r8, 10, %r0;
  mad.lo.u32 %r8, %r3, 1000, %r8;
  mad.lo.u32 %r8, %r4, 10000, %r8;
  st.global.u32 [%d1], %r8;
  ret;
})");
  const uint64_t out = device.Reserve("out", 6 * 60 * 4);
  LaunchOptions options;
  options.grid = {1, 2, 3};
  options.block = {5, 3, 4};
  const LaunchResult result = device.Run("kernel", KernelArguments::Of(out), options);
  EXPECT_TRUE(result.faults.empty()) << Describe(result.faults);
  const auto values = device.Get<uint32_t>(out, 6 * 60);
  for (uint32_t i = 0; i < values.size(); ++i) {
    const uint32_t t = i % 60;
    const uint32_t b = i / 60;
    EXPECT_EQ(values[i], t / 15 * 100 + t / 5 % 3 * 10 + t % 5 + b % 2 * 1000 + b / 2 * 10000) << i;
  }
}

}  // namespace
}  // namespace assay::emulator
