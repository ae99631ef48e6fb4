// Blocks, warps and lanes in other orders: atomics, waiting blocks, grid barriers, and results that
// depend on the order.
#include <cstdint>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "emulator/testing/kernel_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay::emulator {
namespace {

constexpr char kHead[] = ".version 8.0\n.target sm_80\n.address_size 64\n";

struct Order {
  uint64_t seed;
  int threads;
};
constexpr Order kOrders[] = {{0, 1}, {0, 2}, {1, 1}, {1, 2}, {2, 1}, {2, 2}, {77, 2}};

// Every one of 128 threads in two blocks updates one place. %r3 is the thread's number in the grid,
// %d3 the same in 64 bits, %d0 the place.
struct AtomicCase {
  const char* name;
  const char* body;
  uint64_t before;
  uint64_t after;
};
constexpr AtomicCase kAtomics[] = {
    {"AddU32", "red.global.add.u32 [%d0], %r3;", 5, 5 + 127 * 64},
    {"AddS32", "atom.global.add.s32 %r9, [%d0], -1;", 128, 0},
    {"AddU64", "atom.global.add.u64 %d9, [%d0], %d3;", 0xffffffff,
     0xffffffffu + uint64_t{127 * 64}},
    {"AddGeneric", "red.add.u32 [%d0], %r3;", 0, 127 * 64},
    {"AddRelaxed", "red.relaxed.gpu.global.add.u32 [%d0], 1;", 0, 128},
    {"AddF32", "cvt.rn.f32.u32 %f1, %r3; red.global.add.f32 [%d0], %f1;", 0, 0x45fe0000},  // 8128
    {"AddF64", "cvt.rn.f64.u32 %g1, %r3; red.global.add.f64 [%d0], %g1;", 0,
     0x40bfc00000000000},  // 8128
    {"AddF16x2", "mov.b32 %r9, 0x40003c00; red.global.add.noftz.f16x2 [%d0], %r9;", 0,
     0x5c005800},  // 128 and 256
    {"AddBF16x2", "mov.b32 %r9, 0x40003f80; red.global.add.noftz.bf16x2 [%d0], %r9;", 0,
     0x43804300},
    {"MinU32", "add.u32 %r9, %r3, 7; red.global.min.u32 [%d0], %r9;", 1000, 7},
    {"MinS32", "sub.s32 %r9, 3, %r3; red.global.min.s32 [%d0], %r9;", 0, 0xffffff84},
    {"MaxU32", "red.global.max.u32 [%d0], %r3;", 0, 127},
    {"MaxS32", "sub.s32 %r9, 3, %r3; red.global.max.s32 [%d0], %r9;", 0xffffff00, 3},
    {"MinS64", "sub.s64 %d9, 0, %d3; red.global.min.s64 [%d0], %d9;", 0, uint64_t(-127)},
    {"MaxU64", "red.global.max.u64 [%d0], %d3;", 0, 127},
    {"And",
     "shl.b32 %r9, 1, %r3; not.b32 %r9, %r9; and.b32 %r9, %r9, 0xffffff0f; red.global.and.b32 "
     "[%d0], %r9;",
     0xffffffff, 0},
    {"Or", "and.b32 %r8, %r3, 7; shl.b32 %r9, 1, %r8; red.global.or.b32 [%d0], %r9;", 0x100, 0x1ff},
    {"Xor", "red.global.xor.b32 [%d0], %r3;", 3, 3},
    {"Or64", "shl.b64 %d9, 1, %r3; red.global.or.b64 [%d0], %d9;", 0, ~uint64_t{0}},
    {"Inc", "red.global.inc.u32 [%d0], 9;", 0, 8},
    {"Dec", "red.global.dec.u32 [%d0], 9;", 0, 2},
    {"CasLoop",
     "ld.volatile.global.u32 %r8, [%d0];\nTRY: add.u32 %r9, %r8, %r3;\n"
     "atom.global.cas.b32 %r7, [%d0], %r8, %r9; setp.ne.u32 %p0, %r7, %r8; mov.u32 %r8, %r7; @%p0 "
     "bra TRY;",
     0, 127 * 64},
    {"Cas64",
     "ld.volatile.global.u64 %d8, [%d0];\nTRY: add.u64 %d9, %d8, %d3;\n"
     "atom.global.cas.b64 %d7, [%d0], %d8, %d9; setp.ne.u64 %p0, %d7, %d8; mov.u64 %d8, %d7; @%p0 "
     "bra TRY;",
     0, 127 * 64},
    {"ExchangeKeepsTheSum",
     "atom.global.exch.b32 %r8, [%d0], %r3; red.global.add.u32 [%d0+4], %r8; bar.sync 0;", 0,
     ~uint64_t{0}},
};

class EngineAtomicTest : public testing::TestWithParam<AtomicCase> {};

TEST_P(EngineAtomicTest, SumsUpInEveryOrder) {
  const AtomicCase& c = GetParam();
  const std::string ptx = absl::StrCat(kHead, R"(
.visible .entry kernel(.param .u64 place)
{
  .reg .pred %p<2>;
  .reg .b32 %r<12>;
  .reg .f32 %f<2>;
  .reg .f64 %g<2>;
  .reg .b64 %d<12>;
  ld.param.u64 %d0, [place];
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, %ctaid.x;
  mad.lo.u32 %r3, %r1, 64, %r0;
  cvt.u64.u32 %d3, %r3;
)",
                                       c.body, "\nret;\n}\n");
  for (const Order& order : kOrders) {
    SCOPED_TRACE(absl::StrCat("seed ", order.seed, ", host threads ", order.threads));
    KernelFixture device(ptx);
    const uint64_t place = device.Put<uint64_t>("place", {c.before});
    LaunchOptions options = GridOf(2, 64, order.seed);
    options.threads = order.threads;
    const LaunchResult result = device.Run("kernel", KernelArguments::Of(place), options);
    EXPECT_TRUE(result.faults.empty()) << Describe(result.faults);
    const uint64_t value = device.Get<uint64_t>(place, 1)[0];
    if (std::string(c.name) == "ExchangeKeepsTheSum") {
      EXPECT_EQ((value & 0xffffffff) + (value >> 32), 127u * 64);
    } else {
      EXPECT_EQ(value, c.after) << std::hex << value;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, EngineAtomicTest, testing::ValuesIn(kAtomics),
                         [](const testing::TestParamInfo<AtomicCase>& info) {
                           return std::string(info.param.name);
                         });

// Each thread takes a ticket; which, the order decides.
std::string TicketKernel() {
  return absl::StrCat(kHead, R"(
.visible .entry kernel(.param .u64 counter, .param .u64 out)
{
  .reg .b32 %r<8>;
  .reg .b64 %d<8>;
  ld.param.u64 %d0, [counter];
  ld.param.u64 %d1, [out];
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mad.lo.u32 %r3, %r1, %r2, %r0;
  atom.global.add.u32 %r4, [%d0], 1;
  mul.wide.u32 %d2, %r3, 4;
  add.u64 %d2, %d1, %d2;
  st.global.u32 [%d2], %r4;
  ret;
})");
}

std::vector<uint32_t> Tickets(uint64_t seed, int threads) {
  KernelFixture device(TicketKernel());
  const uint64_t counter = device.Put<uint32_t>("counter", {0});
  const uint64_t out = device.Reserve("out", 4 * 512);
  LaunchOptions options = GridOf(8, 64, seed);
  options.threads = threads;
  const LaunchResult result = device.Run("kernel", KernelArguments::Of(counter, out), options);
  EXPECT_TRUE(result.faults.empty()) << Describe(result.faults);
  return device.Get<uint32_t>(out, 512);
}

TEST(EngineOrderTest, SeedZeroIsTheNaturalOrder) {
  std::vector<uint32_t> natural(512);
  std::iota(natural.begin(), natural.end(), 0);
  EXPECT_EQ(Tickets(0, 1), natural);
}

TEST(EngineOrderTest, SeedsChangeTheOrderAndRepeatIt) {
  std::set<std::vector<uint32_t>> orders;
  for (const uint64_t seed : {0, 1, 2, 3, 4, 5}) {
    SCOPED_TRACE(seed);
    const std::vector<uint32_t> tickets = Tickets(seed, 1);
    EXPECT_EQ(tickets, Tickets(seed, 1));
    std::vector<uint32_t> sorted = tickets;
    std::sort(sorted.begin(), sorted.end());
    for (uint32_t i = 0; i < sorted.size(); ++i) ASSERT_EQ(sorted[i], i);
    orders.insert(tickets);
    // Not only blocks change places: lanes do.
    if (seed != 0) {
      EXPECT_FALSE(std::is_sorted(tickets.begin(), tickets.begin() + 64));
    }
  }
  EXPECT_EQ(orders.size(), 6u);
}

TEST(EngineOrderTest, BlocksBeginInSomeOrder) {
  std::set<uint32_t> last;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    KernelFixture device(absl::StrCat(kHead, R"(
.visible .entry kernel(.param .u64 out)
{
  .reg .b32 %r<2>;
  .reg .b64 %d<2>;
  ld.param.u64 %d0, [out];
  mov.u32 %r0, %ctaid.x;
  st.volatile.global.u32 [%d0], %r0;
  ret;
})"));
    const uint64_t out = device.Reserve("out", 4);
    EXPECT_TRUE(device.Run("kernel", KernelArguments::Of(out), GridOf(7, 1, seed)).faults.empty());
    last.insert(device.Get<uint32_t>(out, 1)[0]);
  }
  EXPECT_TRUE(last.contains(6));
  EXPECT_GT(last.size(), 2u);
}

// Blocks that wait for the next block's flag: those of higher numbers must get their turn
// meanwhile.
TEST(EngineOrderTest, WaitingBlocksLetOthersGoOn) {
  for (const Order& order : kOrders) {
    SCOPED_TRACE(absl::StrCat("seed ", order.seed, ", host threads ", order.threads));
    KernelFixture device(absl::StrCat(kHead, R"(
.visible .entry kernel(.param .u64 flags)
{
  .reg .pred %p<2>;
  .reg .b32 %r<8>;
  .reg .b64 %d<4>;
  ld.param.u64 %d0, [flags];
  mov.u32 %r0, %ctaid.x;
  mul.wide.u32 %d1, %r0, 4;
  add.u64 %d1, %d0, %d1;
  mov.u32 %r1, 0;
  setp.eq.u32 %p0, %r0, 9;
  @%p0 bra SET;
WAIT:
  ld.volatile.global.u32 %r1, [%d1+4];
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra WAIT;
SET:
  add.u32 %r1, %r1, 1;
  st.volatile.global.u32 [%d1], %r1;
  ret;
})"));
    const uint64_t flags = device.Put("flags", std::vector<uint32_t>(10, 0));
    LaunchOptions options = GridOf(10, 1, order.seed);
    options.threads = order.threads;
    options.instructions_max = 100'000'000;
    const LaunchResult result = device.Run("kernel", KernelArguments::Of(flags), options);
    EXPECT_TRUE(result.faults.empty()) << Describe(result.faults);
    EXPECT_THAT(device.Get<uint32_t>(flags, 10),
                testing::ElementsAre(10, 9, 8, 7, 6, 5, 4, 3, 2, 1));
  }
}

// Three phases with a barrier of the whole grid between, written as cooperative groups do it.
TEST(EngineOrderTest, GridBarrierOrdersPhases) {
  const std::string ptx = absl::StrCat(kHead, R"(
.visible .entry kernel(.param .u64 values)
{
  .reg .pred %p<8>;
  .reg .b32 %r<32>;
  .reg .b64 %d<16>;
  ld.param.u64 %d0, [values];
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %nctaid.x;
  mad.lo.u32 %r4, %r1, %r2, %r0;
  mul.lo.u32 %r5, %r2, %r3;
  sub.u32 %r6, %r5, 1;
  sub.u32 %r6, %r6, %r4;
  mul.wide.u32 %d1, %r4, 4;
  add.u64 %d1, %d0, %d1;
  mul.wide.u32 %d2, %r6, 4;
  add.u64 %d2, %d0, %d2;
  mov.u32 %r7, %envreg2;
  cvt.u64.u32 %d3, %r7;
  mov.u32 %r8, %envreg1;
  cvt.u64.u32 %d4, %r8;
  bfi.b64 %d5, %d4, %d3, 32, 32;
  setp.ne.s64 %p0, %d5, 0;
  @%p0 bra BEGIN;
  trap;
BEGIN:
  add.u64 %d6, %d5, 4;
  mov.u32 %r20, 0;
PHASE:
  ld.global.u32 %r9, [%d2];
  barrier.sync 0;
  setp.ne.u32 %p1, %r0, 0;
  @%p1 bra MET1;
  mov.u32 %r10, -2147483647;
  sub.s32 %r10, %r10, %r3;
  setp.eq.u32 %p2, %r1, 0;
  add.s32 %r10, %r10, 0;
  selp.b32 %r11, %r10, 1, %p2;
  atom.add.release.gpu.u32 %r12, [%d6], %r11;
WAIT1:
  ld.acquire.gpu.u32 %r13, [%d6];
  xor.b32 %r14, %r13, %r12;
  setp.gt.s32 %p3, %r14, -1;
  @%p3 bra WAIT1;
MET1:
  barrier.sync 0;
  add.u32 %r9, %r9, 1;
  st.global.u32 [%d1], %r9;
  barrier.sync 0;
  @%p1 bra MET2;
  atom.add.release.gpu.u32 %r12, [%d6], %r11;
WAIT2:
  ld.acquire.gpu.u32 %r13, [%d6];
  xor.b32 %r14, %r13, %r12;
  setp.gt.s32 %p3, %r14, -1;
  @%p3 bra WAIT2;
MET2:
  barrier.sync 0;
  add.u32 %r20, %r20, 1;
  setp.lt.u32 %p4, %r20, 3;
  @%p4 bra PHASE;
  ret;
})");
  for (const Order& order : kOrders) {
    SCOPED_TRACE(absl::StrCat("seed ", order.seed, ", host threads ", order.threads));
    KernelFixture device(ptx);
    std::vector<uint32_t> start(5 * 64);
    std::iota(start.begin(), start.end(), 0);
    const uint64_t values = device.Put("values", start);
    LaunchOptions options = GridOf(5, 64, order.seed);
    options.threads = order.threads;
    options.cooperative = true;
    const LaunchResult result = device.Run("kernel", KernelArguments::Of(values), options);
    EXPECT_TRUE(result.faults.empty()) << Describe(result.faults);
    const auto after = device.Get<uint32_t>(values, start.size());
    for (size_t i = 0; i < after.size(); ++i) ASSERT_EQ(after[i], after.size() - 1 - i + 3) << i;
  }
}

// What was counted does not depend on the order either.
TEST(EngineOrderTest, HostThreadsCountTheSame) {
  Counters first;
  for (const int threads : {1, 2, 4}) {
    KernelFixture device(TicketKernel());
    const uint64_t counter = device.Put<uint32_t>("counter", {0});
    const uint64_t out = device.Reserve("out", 4 * 64 * 40);
    LaunchOptions options = GridOf(40, 64);
    options.threads = threads;
    const Counters counters =
        device.Run("kernel", KernelArguments::Of(counter, out), options).counters;
    if (threads == 1) first = counters;
    EXPECT_EQ(counters.warp_instructions, 80u * 11);
    EXPECT_EQ(counters.thread_instructions, first.thread_instructions);
    EXPECT_EQ(counters.atomic_operations, 64u * 40);
    EXPECT_EQ(counters.global_store_bytes, 4u * 64 * 40);
    EXPECT_EQ(counters.global_sectors, first.global_sectors);
    EXPECT_EQ(device.Get<uint32_t>(counter, 1)[0], 64u * 40);
  }
}

// Work that is dear to emulate ends within its turn, in any order and on any host thread.
TEST(EngineTimeTest, AnExhaustedBudgetOfCpuTimeStopsTheLaunch) {
  const std::string ptx = absl::StrCat(kHead, R"(
.visible .entry plain(.param .u64 place) { ret; }
.visible .entry atomics(.param .u64 place)
{
  .reg .pred %p<2>;
  .reg .b32 %r<4>;
  .reg .b64 %d<2>;
  ld.param.u64 %d0, [place];
  mov.u32 %r0, 0;
NEXT:
  membar.gl;
  atom.global.add.u32 %r1, [%d0], 1;
  add.u32 %r0, %r0, 1;
  setp.lt.u32 %p0, %r0, 5000;
  @%p0 bra NEXT;
  ret;
})");
  for (const Order& order : kOrders) {
    for (const char* const kernel : {"plain", "atomics"}) {
      for (const bool cooperative : {false, true}) {
        SCOPED_TRACE(
            absl::StrCat(kernel, " ", order.seed, " ", order.threads, " ", int{cooperative}));
        KernelFixture device(ptx);
        const uint64_t place = device.Put("place", std::vector<uint32_t>{0});
        LaunchOptions options = GridOf(4, 64, order.seed);
        options.threads = order.threads;
        options.cooperative = cooperative;
        options.cpu_ns_max = 0;
        const LaunchResult result = device.Run(kernel, KernelArguments::Of(place), options);
        EXPECT_TRUE(result.stopped);
        ASSERT_FALSE(result.faults.empty());
        EXPECT_EQ(result.faults[0].kind, FaultKind::kTimeBudget) << Describe(result.faults);
        EXPECT_THAT(result.faults[0].message, testing::HasSubstr("smaller workload"));
        EXPECT_LT(result.counters.warp_instructions, 5000u);
        EXPECT_GT(result.cpu_ns, 0);
      }
    }
  }
}

}  // namespace
}  // namespace assay::emulator
