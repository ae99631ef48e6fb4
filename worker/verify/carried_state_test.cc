// Kernels that keep something in module-scope variables, and their honest neighbours, through the
// runner's one entry.
#include "worker/verify/carried_state.h"

#include <cmath>

#include "gmock/gmock.h"
#include "worker/testing/emulated_fixture.h"

namespace assay {
namespace {

using internal::v1::CarriedState;

// A word an element, and %d5 its address.
constexpr char kWords[] =
    ".global .align 4 .u32 words[4096];\n.global .align 4 .f32 kept[4096];\n"
    ".global .align 4 .u32 count;\n";
constexpr char kOwnWord[] = "mov.u64 %d5, words; add.u64 %d5, %d5, %d4; ld.global.u32 %r4, [%d5];";
constexpr char kCompute[] = "ld.global.f32 %f0, [%d2]; mul.f32 %f1, %f0, 0f40400000;";
constexpr char kStore[] = "st.global.f32 [%d3], %f1;";
constexpr char kTakeTicket[] = "mov.u64 %d5, count; atom.global.add.u32 %r4, [%d5], 1;";
// What ticket %r4 stands for, where it stands for an element.
constexpr char kServeTicket[] =
    "setp.ge.u32 %p0, %r4, 64; @%p0 bra over; mul.wide.u32 %d6, %r4, 4; add.u64 %d7, %d0, %d6;"
    "add.u64 %d8, %d1, %d6; ld.global.f32 %f0, [%d7]; mul.f32 %f1, %f0, 0f40400000;"
    "st.global.f32 [%d8], %f1; over:";
constexpr char kServeAnyTicket[] =
    "mul.wide.u32 %d6, %r4, 4; add.u64 %d7, %d0, %d6; add.u64 %d8, %d1, %d6;"
    "ld.global.f32 %f0, [%d7]; mul.f32 %f1, %f0, 0f40400000; st.global.f32 [%d8], %f1;";

class CarriedStateTest : public EmulatedRunnerTest {
 protected:
  // What is found of a kernel of one thread an element.
  CarriedState RunOf(const std::string& body) {
    ptx_.clear();
    request_.mutable_device()->mutable_candidate()->mutable_plan()->clear_launches();
    request_.clear_work();
    AddWork("main", 64, true, false);
    Declare(kWords);
    Launch("candidate", 64, body);
    const RunnerReport report = RunDevice();
    const RunnerWorkloadReport& work = report.workloads(0);
    EXPECT_TRUE(work.verification().passed()) << report.DebugString();
    return work.carried_state();
  }
};

TEST_F(CarriedStateTest, WhatVariablesCarryIsFoundAndHonestOnesAreNot) {
  const struct {
    const char* name;
    std::string body;
    CarriedState::Kind kind;
    int call;  // 0: any
    const char* reason;
  } rows[] = {
      {"the first answer for ever",
       absl::StrCat(
           kOwnWord, "mov.u64 %d6, kept; add.u64 %d6, %d6, %d4; setp.ne.u32 %p0, %r4, 0;",
           "@%p0 bra replay;", kCompute, "st.global.f32 [%d6], %f1; mov.u32 %r4, 1;",
           "st.global.u32 [%d5], %r4; bra store; replay: ld.global.f32 %f1, [%d6]; store:", kStore),
       CarriedState::STALE_ANSWER, 2, "MISMATCH"},
      {"the last answer by address",
       absl::StrCat(kOwnWord, "mov.u64 %d6, kept; add.u64 %d6, %d6, %d4; cvt.u32.u64 %r5, %d2;",
                    "setp.eq.u32 %p0, %r4, %r5; @%p0 bra replay;", kCompute,
                    "st.global.f32 [%d6], %f1; st.global.u32 [%d5], %r5; bra store;",
                    "replay: ld.global.f32 %f1, [%d6]; store:", kStore),
       CarriedState::STALE_ANSWER, 2, "MISMATCH"},
      {"wrong after three calls",
       absl::StrCat(kOwnWord, kCompute, "add.u32 %r5, %r4, 1; st.global.u32 [%d5], %r5;",
                    "setp.gt.u32 %p0, %r4, 2; @%p0 mul.f32 %f1, %f1, 0f3f000000;", kStore),
       CarriedState::WRONG_LATER, 4, "MISMATCH"},
      {"nothing after five calls",
       absl::StrCat(kOwnWord, kCompute, "add.u32 %r5, %r4, 1; st.global.u32 [%d5], %r5;",
                    "setp.gt.u32 %p0, %r4, 4; @%p0 bra over;", kStore, "over:"),
       CarriedState::WRONG_LATER, 6, "OUTPUT_NOT_WRITTEN"},
      // It counts to 300 for the factor, once.
      {"a table made by the first call",
       absl::StrCat(kOwnWord, "setp.ne.u32 %p0, %r4, 0; @%p0 bra ready; count_up:",
                    "add.u32 %r4, %r4, 1; setp.lt.u32 %p0, %r4, 300; @%p0 bra count_up;",
                    "st.global.u32 [%d5], %r4; ready: cvt.rn.f32.u32 %f2, %r4;",
                    "div.rn.f32 %f2, %f2, 0f42c80000; ld.global.f32 %f0, [%d2];",
                    "mul.f32 %f1, %f0, %f2;", kStore),
       CarriedState::KEPT_CONSTANTS, 0, ""},
      {"more work at every call",
       absl::StrCat(kOwnWord, kCompute, "add.u32 %r4, %r4, 100; st.global.u32 [%d5], %r4;",
                    "count_down: sub.u32 %r4, %r4, 1; setp.ne.u32 %p0, %r4, 0;",
                    "@%p0 bra count_down;", kStore),
       CarriedState::MORE_WORK, 0, ""},
      // Counts to 300 in the first call, not in the next four, and to more than 600 from then on.
      {"a table, and more work later",
       absl::StrCat(kOwnWord, kCompute, "setp.ne.u32 %p0, %r4, 0; @%p0 bra ready; count_up:",
                    "add.u32 %r4, %r4, 1; setp.lt.u32 %p0, %r4, 300; @%p0 bra count_up;",
                    "st.global.u32 [%d5], %r4; bra answer; ready: add.u32 %r4, %r4, 1;",
                    "st.global.u32 [%d5], %r4; setp.lt.u32 %p0, %r4, 305; @%p0 bra answer;",
                    "shl.b32 %r4, %r4, 1; count_down: sub.u32 %r4, %r4, 1;",
                    "setp.ne.u32 %p0, %r4, 0; @%p0 bra count_down; answer:", kStore),
       CarriedState::MORE_WORK, 0, ""},
      // Where nobody puts it back, it rounds the other way in every second call.
      {"other bits",
       absl::StrCat(kOwnWord, kCompute, "add.u32 %r5, %r4, 1; st.global.u32 [%d5], %r5;",
                    "and.b32 %r5, %r5, 1; mov.b32 %r6, %f1; xor.b32 %r6, %r6, %r5;",
                    "mov.b32 %f1, %r6;", kStore),
       CarriedState::OTHER_BITS, 0, ""},
      {"tickets that nobody puts back", absl::StrCat(kTakeTicket, kServeTicket),
       CarriedState::NEEDS_RESET, 2, "OUTPUT_NOT_WRITTEN"},
      {"tickets that run over", absl::StrCat(kTakeTicket, kServeAnyTicket),
       CarriedState::NEEDS_RESET, 2, "OUT_OF_BOUNDS"},
      // The honest ones.
      {"no variable in use", absl::StrCat(kCompute, kStore), CarriedState::KIND_UNSPECIFIED, 0, ""},
      {"tickets that put themselves back",
       absl::StrCat("mov.u64 %d5, count; atom.global.inc.u32 %r4, [%d5], 63;", kServeTicket),
       CarriedState::KIND_UNSPECIFIED, 0, ""},
      {"a counter that only grows",
       absl::StrCat(kTakeTicket, "rem.u32 %r4, %r4, 64;", kServeTicket),
       CarriedState::KIND_UNSPECIFIED, 0, ""},
      {"scratch that every call fills",
       absl::StrCat(kOwnWord, kCompute, "mov.b32 %r5, %f1; st.global.u32 [%d5], %r5;", kStore),
       CarriedState::KIND_UNSPECIFIED, 0, ""},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const CarriedState found = RunOf(row.body);
    EXPECT_EQ(found.kind(), row.kind) << found.DebugString();
    if (row.call != 0) {
      EXPECT_EQ(found.call(), row.call) << found.DebugString();
    }
    EXPECT_EQ(found.reason(), row.reason) << found.DebugString();
    if (row.kind == CarriedState::STALE_ANSWER) {
      EXPECT_EQ(found.earlier_call(), 1);
    }
    if (row.kind == CarriedState::KEPT_CONSTANTS) {
      EXPECT_LT(found.thread_instructions() + 10'000, found.fresh_thread_instructions());
    }
    if (row.kind == CarriedState::MORE_WORK) {
      EXPECT_GT(found.thread_instructions(), found.fresh_thread_instructions() + 1'000);
    }
  }
}

// Counts to 300 unless the mantissa is that of the element's last input: then the answer differs
// from the last one by a power of two.
TEST_F(CarriedStateTest, WorkSavedOnRelatedContentAloneIsCarried) {
  request_.mutable_problem()->mutable_transforms()->DeleteSubrange(0, 1);
  ASSERT_TRUE(request_.problem().transforms(0).has_power_of_two_scale());
  const CarriedState found = RunOf(absl::StrCat(
      kOwnWord, "ld.global.f32 %f0, [%d2]; mov.b32 %r5, %f0; and.b32 %r5, %r5, 8388607;",
      "or.b32 %r5, %r5, 8388608; setp.eq.u32 %p0, %r4, %r5; @%p0 bra ready; mov.u32 %r6, 0;",
      "count_up: add.u32 %r6, %r6, 1; setp.lt.u32 %p0, %r6, 300; @%p0 bra count_up;",
      "st.global.u32 [%d5], %r5; ready: mul.f32 %f1, %f0, 0f40400000;", kStore));
  EXPECT_EQ(found.kind(), CarriedState::LESS_WORK) << found.DebugString();
  EXPECT_LT(found.thread_instructions() + 10'000, found.fresh_thread_instructions());
}

// Elements that grow with the scale are each the largest so far: the answer to an earlier content,
// with as many different values as it has elements, and yet no replay.
TEST_F(CarriedStateTest, LargestElementsThatNobodyPutsBackAreNoReplay) {
  request_.mutable_problem()->mutable_transforms()->DeleteSubrange(0, 1);
  request_.mutable_problem()->mutable_transforms(0)->mutable_power_of_two_scale()->set_signed_(
      false);
  FakeGuestPlan reference;
  reference.compute = [](int call, const Tensors& t, const std::vector<int64_t>& axes) {
    for (int64_t i = 0; i < axes[0]; ++i) {
      reinterpret_cast<double*>(t[1].data())[i] = std::fabs(Floats(t[0])[i]);
    }
  };
  const std::string load =
      absl::StrCat(kOwnWord, "ld.global.f32 %f0, [%d2]; abs.f32 %f0, %f0; mov.b32 %f1, %r4;");
  const struct {
    const char* name;
    std::string body;
  } rows[] = {
      {"as much work as ever",
       absl::StrCat(load, "max.f32 %f1, %f1, %f0; mov.b32 %r4, %f1; st.global.u32 [%d5], %r4;",
                    kStore)},
      // It counts to 300 for an element that is larger.
      {"what is no larger is skipped",
       absl::StrCat(
           load, "setp.le.f32 %p0, %f0, %f1; @%p0 bra known; mov.u32 %r6, 0;",
           "count_up: add.u32 %r6, %r6, 1; setp.lt.u32 %p0, %r6, 300; @%p0 bra count_up;",
           "mov.f32 %f1, %f0; mov.b32 %r4, %f1; st.global.u32 [%d5], %r4; known:", kStore)},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    ptx_.clear();
    request_.mutable_device()->mutable_candidate()->mutable_plan()->clear_launches();
    Declare(kWords);
    Launch("candidate", 64, row.body);
    bool needs_reset = false;
    for (uint64_t nonce = 1; nonce <= 20; ++nonce) {
      SCOPED_TRACE(nonce);
      request_.set_nonce(nonce);
      request_.clear_work();
      AddWork("main", 64, true, false);
      const RunnerReport report = RunDevice(reference);
      EXPECT_TRUE(report.workloads(0).verification().passed()) << report.DebugString();
      const CarriedState& found = report.workloads(0).carried_state();
      EXPECT_NE(found.kind(), CarriedState::STALE_ANSWER) << found.DebugString();
      needs_reset |= found.kind() == CarriedState::NEEDS_RESET;
    }
    EXPECT_TRUE(needs_reset);
  }
}

TEST_F(CarriedStateTest, AConstantTableCarriesNothing) {
  AddWork("main", 64, true, false);
  Declare(".global .align 4 .f32 table[2] = {0f3f800000, 0f40400000};\n");
  Launch("candidate", 64,
         absl::StrCat("mov.u64 %d5, table; ld.global.f32 %f2, [%d5+4]; ld.global.f32 %f0, [%d2];",
                      "mul.f32 %f1, %f0, %f2;", kStore));
  const RunnerReport report = RunDevice();
  EXPECT_FALSE(report.workloads(0).has_carried_state()) << report.DebugString();
}

// Its counter grows for ever; two blocks wait until two more have come.
TEST_F(CarriedStateTest, AGridBarrierCarriesNothing) {
  AddWork("main", 128, false, false);
  Declare(kWords);
  Launch("candidate", 64,
         absl::StrCat("mov.u64 %d5, count; setp.ne.u32 %p0, %r0, 0; @%p0 bra passed;",
                      "atom.acq_rel.gpu.global.add.u32 %r4, [%d5], 1; shr.u32 %r5, %r4, 1;",
                      "add.u32 %r5, %r5, 1; shl.b32 %r5, %r5, 1;",
                      "wait: ld.acquire.gpu.global.u32 %r6, [%d5]; setp.lt.u32 %p1, %r6, %r5;",
                      "@%p1 bra wait; passed: bar.sync 0;", kCompute, kStore));
  request_.mutable_device()->mutable_candidate()->mutable_plan()->mutable_launches(0)->set_grid(
      0, "2");
  const RunnerReport report = RunDevice();
  EXPECT_TRUE(report.workloads(0).verification().passed()) << report.DebugString();
  EXPECT_FALSE(report.workloads(0).has_carried_state()) << report.DebugString();
}

// The largest so far is often the largest of an earlier call: no replay.
TEST_F(CarriedStateTest, AMaximumThatNobodyPutsBackIsNoReplay) {
  DrawIntegers();
  request_.mutable_problem()->clear_transforms();
  FakeGuestPlan reference;
  reference.compute = [](int call, const Tensors& t, const std::vector<int64_t>& axes) {
    float most = 0;
    for (int64_t i = 0; i < axes[0]; ++i) most = std::max(most, Floats(t[0])[i]);
    for (int64_t i = 0; i < axes[0]; ++i) reinterpret_cast<double*>(t[1].data())[i] = most;
  };
  Declare(kWords);
  Launch("candidate", 8,
         "mov.u64 %d5, count; ld.global.u32 %r4, [%d2]; atom.global.max.u32 %r5, [%d5], %r4;"
         "bar.sync 0; ld.global.u32 %r6, [%d5]; st.global.u32 [%d3], %r6;");
  for (uint64_t nonce = 1; nonce <= 20; ++nonce) {
    SCOPED_TRACE(nonce);
    request_.set_nonce(nonce);
    request_.clear_work();
    AddWork("main", 8, true, false);
    const RunnerReport report = RunDevice(reference);
    EXPECT_TRUE(report.workloads(0).verification().passed()) << report.DebugString();
    const CarriedState& found = report.workloads(0).carried_state();
    EXPECT_TRUE(found.kind() == CarriedState::NEEDS_RESET ||
                found.kind() == CarriedState::KIND_UNSPECIFIED)
        << found.DebugString();
  }
}

TEST_F(CarriedStateTest, DearCallsAreFewer) {
  EXPECT_EQ(CarriedStateCheck::CallCount(0), 12);
  EXPECT_EQ(CarriedStateCheck::CallCount(160'000), 12);
  EXPECT_EQ(CarriedStateCheck::CallCount(330'000), 6);
  EXPECT_EQ(CarriedStateCheck::CallCount(660'000), 3);
  EXPECT_EQ(CarriedStateCheck::CallCount(670'000), 0);
}

}  // namespace
}  // namespace assay
