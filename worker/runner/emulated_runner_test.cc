// What the runner says of kernels on the emulated device: the emulated driver's library and small
// kernels are real, the reference is a fake guest.
#include "gmock/gmock.h"
#include "worker/testing/emulated_fixture.h"

namespace assay {
namespace {

constexpr char kZero[] = "ld.param.u64 %d5, [work]; mov.u32 %r4, 0; st.global.u32 [%d5], %r4;";
// Each thread takes the next element, so that its own place depends on who comes first.
constexpr char kTicket[] =
    "ld.param.u64 %d5, [work]; atom.global.add.u32 %r4, [%d5], 1; ld.global.f32 %f0, [%d2];"
    "mul.f32 %f1, %f0, 0f40400000; mul.wide.u32 %d6, %r4, 4; add.u64 %d6, %d1, %d6;"
    "st.global.f32 [%d6], %f1;";
// The sum of x, added up in the order in which threads come.
constexpr char kSum[] =
    "ld.param.u64 %d5, [work]; ld.global.f32 %f0, [%d2]; red.global.add.f32 [%d5], %f0;";
constexpr char kSpread[] =
    "ld.param.u64 %d5, [work]; ld.global.f32 %f0, [%d5]; st.global.f32 [%d3], %f0;";
// 3 = 2^2 - 1, exactly.
constexpr char kApproximate[] =
    "ld.global.f32 %f0, [%d2]; mov.f32 %f2, 0f40000000; ex2.approx.f32 %f2, %f2;"
    "sub.f32 %f2, %f2, 0f3f800000; mul.f32 %f1, %f0, %f2; st.global.f32 [%d3], %f1;";

TEST_F(EmulatedRunnerTest, CountsOfTheFirstCallAreReported) {
  AddWork("main", 64, true, false);
  Launch("triple", 64, kTriple);
  const RunnerReport report = RunDevice();
  const RunnerWorkloadReport& work = report.workloads(0);
  EXPECT_TRUE(work.verification().passed()) << report.DebugString();
  // x1 in three orders, the others in one each.
  EXPECT_EQ(work.verification().checked_call_count(), 13);
  const v1::ObservedWork& observed = work.observed();
  EXPECT_EQ(observed.launches(), 1);
  EXPECT_EQ(observed.f32_flops(), 64);
  EXPECT_EQ(observed.tensor_flops(), 0);
  EXPECT_EQ(observed.special_operations(), 0);
  EXPECT_EQ(observed.integer_operations(), 64 * 4);  // all of addresses
  EXPECT_EQ(observed.global_load_bytes(), 64 * 4);
  EXPECT_EQ(observed.global_store_bytes(), 64 * 4);
  EXPECT_EQ(observed.global_sectors(), 2 * 2 * 4);
  EXPECT_EQ(observed.global_sectors_least(), 2 * 2 * 4);
  EXPECT_EQ(observed.warp_instructions(), 2 * (9 + 3 + 1));
  EXPECT_EQ(observed.thread_instructions(), 64 * (9 + 3 + 1));
  EXPECT_EQ(observed.branches(), 0);
  EXPECT_EQ(observed.barriers(), 0);
  EXPECT_FALSE(work.has_order_dependence()) << report.DebugString();
  EXPECT_FALSE(work.has_approximation_dependence()) << report.DebugString();
}

TEST_F(EmulatedRunnerTest, AnOutputThatIsRightInOneOrderOnlyIsNondeterministic) {
  AddWork("main", 64, true, false);
  Launch("zero", 1, kZero);
  Launch("ticket", 64, kTicket);
  const RunnerReport report = RunDevice();
  const RunnerWorkloadReport& work = report.workloads(0);
  EXPECT_FALSE(work.verification().passed());
  EXPECT_EQ(work.reason(), "MISMATCH");
  EXPECT_TRUE(work.nondeterministic());
  ASSERT_TRUE(work.has_order_dependence()) << report.DebugString();
  const internal::v1::OrderDependence& found = work.order_dependence();
  EXPECT_TRUE(found.wrong());
  EXPECT_TRUE(found.replayable());
  EXPECT_EQ(found.input_case(), "x1");
  EXPECT_EQ(found.tensor(), "y");
  EXPECT_EQ(found.first_order(), 0u);
  EXPECT_NE(found.other_order(), 0u);
  ASSERT_EQ(found.index_size(), 1);
  // The natural order is the right one.
  EXPECT_NE(found.first_value(), found.other_value());
  EXPECT_EQ(found.other_value(), work.verification().first_mismatch().got());
  EXPECT_EQ(found.index(0), work.verification().first_mismatch().index(0));
}

// With blocks on several cores even the natural order may be wrong at every try.
TEST_F(EmulatedRunnerTest, BlocksThatRaceForTheirPlaceAreNondeterministic) {
  AddWork("main", 4096, true, false);
  Launch("zero", 1, kZero);
  Launch("ticket", 64, kTicket);
  internal::v1::DeviceTarget& device = *request_.mutable_device();
  device.mutable_candidate()->mutable_plan()->mutable_launches(1)->set_grid(0, "64");
  const RunnerReport report = RunDevice();
  EXPECT_TRUE(report.workloads(0).nondeterministic()) << report.DebugString();
  ASSERT_TRUE(report.workloads(0).has_order_dependence()) << report.DebugString();
  EXPECT_TRUE(report.workloads(0).order_dependence().wrong());
  EXPECT_TRUE(report.workloads(0).order_dependence().replayable());
}

TEST_F(EmulatedRunnerTest, SumsThatRoundDifferentlyAreNoFault) {
  request_.mutable_problem()->mutable_tensors(1)->mutable_tolerance()->set_element_max(1e-4);
  request_.mutable_problem()->mutable_tensors(1)->mutable_tolerance()->set_relative_l2_max(1e-4);
  request_.mutable_problem()->clear_transforms();
  // Far from zero, so that nothing cancels.
  v1::Tensor& x = *request_.mutable_problem()->mutable_tensors(0);
  x.mutable_distribution()->mutable_uniform()->set_low(1);
  x.mutable_distribution()->mutable_uniform()->set_high(2);
  AddWork("main", 256, true, false);
  Launch("zero", 1, kZero);
  Launch("sum", 256, kSum);
  Launch("spread", 256, kSpread);
  FakeGuestPlan reference;
  reference.compute = [](int call, const Tensors& t, const std::vector<int64_t>& axes) {
    double sum = 0;
    for (int64_t i = 0; i < axes[0]; ++i) sum += Floats(t[0])[i];
    for (int64_t i = 0; i < axes[0]; ++i) reinterpret_cast<double*>(t[1].data())[i] = sum;
  };
  const RunnerReport report = RunDevice(reference);
  const RunnerWorkloadReport& work = report.workloads(0);
  EXPECT_TRUE(work.verification().passed()) << report.DebugString();
  EXPECT_FALSE(work.nondeterministic());
  ASSERT_TRUE(work.has_order_dependence()) << report.DebugString();
  EXPECT_FALSE(work.order_dependence().wrong());
  EXPECT_TRUE(work.order_dependence().replayable());
  EXPECT_EQ(work.order_dependence().differing_count(), 256);
  EXPECT_NEAR(work.order_dependence().first_value(), work.order_dependence().other_value(), 1e-2);
  EXPECT_EQ(work.observed().launches(), 3);
  EXPECT_EQ(work.observed().atomic_operations(), 256);
}

// Sums of small integers are exact in any order.
TEST_F(EmulatedRunnerTest, AtomicSumsOfIntegersDependOnNothing) {
  DrawIntegers();
  request_.mutable_problem()->clear_transforms();
  AddWork("main", 256, true, false);
  Launch("zero", 1, kZero);
  Launch("sum", 256, kSum);
  Launch("spread", 256, kSpread);
  FakeGuestPlan reference;
  reference.compute = [](int call, const Tensors& t, const std::vector<int64_t>& axes) {
    double sum = 0;
    for (int64_t i = 0; i < axes[0]; ++i) sum += Floats(t[0])[i];
    for (int64_t i = 0; i < axes[0]; ++i) reinterpret_cast<double*>(t[1].data())[i] = sum;
  };
  const RunnerReport report = RunDevice(reference);
  EXPECT_TRUE(report.workloads(0).verification().passed()) << report.DebugString();
  EXPECT_FALSE(report.workloads(0).has_order_dependence()) << report.DebugString();
}

TEST_F(EmulatedRunnerTest, DependenceOnUndocumentedAccuracyIsNoted) {
  DrawIntegers();
  AddWork("main", 64, true, false);
  Launch("triple", 64, kApproximate);
  // The bound of ex2.approx is 2 units in the last place of 4, 3e-7 of the output.
  v1::TolerancePolicy& tolerance =
      *request_.mutable_problem()->mutable_tensors(1)->mutable_tolerance();
  tolerance.set_element_max(1e-9);
  tolerance.set_relative_l2_max(1e-9);
  RunnerReport report = RunDevice();
  const RunnerWorkloadReport& work = report.workloads(0);
  EXPECT_TRUE(work.verification().passed()) << report.DebugString();
  EXPECT_EQ(work.observed().special_operations(), 64);
  ASSERT_TRUE(work.has_approximation_dependence()) << report.DebugString();
  EXPECT_EQ(work.approximation_dependence().reason(), "MISMATCH");
  EXPECT_EQ(work.approximation_dependence().input_case(), "x1");
  EXPECT_EQ(work.approximation_dependence().mismatch().tensor(), "y");
  EXPECT_FALSE(work.has_order_dependence());

  tolerance.set_element_max(1e-6);
  tolerance.set_relative_l2_max(1e-6);
  report = RunDevice();
  EXPECT_FALSE(report.workloads(0).has_approximation_dependence()) << report.DebugString();
}

TEST_F(EmulatedRunnerTest, WhatClocksChangeIsTold) {
  const struct {
    const char* name;
    std::string body;
    bool found;
    const char* reason;
  } rows[] = {
      {"a clock that is read for nothing", absl::StrCat("mov.u64 %d5, %clock64;", kTriple), false,
       ""},
      {"wrong where it is late",
       absl::StrCat("mov.u64 %d5, %globaltimer; ld.global.f32 %f0, [%d2]; mov.f32 %f2, 0f40400000;",
                    "setp.gt.u64 %p0, %d5, 100000; @%p0 mov.f32 %f2, 0f40000000;",
                    "mul.f32 %f1, %f0, %f2; st.global.f32 [%d3], %f1;"),
       true, "MISMATCH"},
      {"waits for a time",
       absl::StrCat("mov.u64 %d5, %clock64; wait: mov.u64 %d6, %clock64; sub.u64 %d7, %d6, %d5;",
                    "setp.lt.u64 %p0, %d7, 900; @%p0 bra wait;", kTriple),
       true, ""},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    ptx_.clear();
    request_.mutable_device()->mutable_candidate()->mutable_plan()->clear_launches();
    request_.clear_work();
    AddWork("main", 64, true, false);
    Launch("candidate", 64, row.body);
    const RunnerReport report = RunDevice();
    const RunnerWorkloadReport& work = report.workloads(0);
    EXPECT_TRUE(work.verification().passed()) << report.DebugString();
    ASSERT_EQ(work.has_clock_dependence(), row.found) << report.DebugString();
    EXPECT_EQ(work.clock_dependence().reason(), row.reason) << report.DebugString();
    if (!row.found) continue;
    EXPECT_GT(work.clock_dependence().clock_rate(), 1u);
    EXPECT_GT(work.clock_dependence().thread_instructions(), 0);
    EXPECT_GT(work.clock_dependence().other_thread_instructions(), 0);
  }
}

// Nothing but tensors and workspaces is there, and inputs are not written even for a moment.
TEST_F(EmulatedRunnerTest, NothingBesideTheTensorsIsReadAndNoInputWritten) {
  const struct {
    const char* name;
    const char* body;
    const char* check;
  } rows[] = {
      {"the slot after the input", "ld.global.f32 %f0, [%d2+256];", "OUT_OF_BOUNDS"},
      {"far after it", "ld.global.f32 %f0, [%d2+1048576];", "OUT_OF_BOUNDS"},
      {"before it", "ld.global.f32 %f0, [%d2+-256];", "OUT_OF_BOUNDS"},
      {"between input and output",
       "add.u64 %d5, %d0, %d1; shr.u64 %d5, %d5, 4; shl.b64 %d5, %d5, 3;"
       "ld.global.f32 %f0, [%d5];",
       "OUT_OF_BOUNDS"},
      {"an input as scratch, restored",
       "ld.global.f32 %f0, [%d2]; mul.f32 %f1, %f0, 0f40400000; st.global.f32 [%d2], %f1;"
       "ld.global.f32 %f2, [%d2]; st.global.f32 [%d3], %f2; st.global.f32 [%d2], %f0;",
       "INPUT_WRITTEN"},
      {"an input by way of the output",
       "sub.u64 %d5, %d0, %d1; add.u64 %d6, %d3, %d5; ld.global.f32 %f0, [%d2];"
       "st.global.f32 [%d6], %f0;",
       "INPUT_WRITTEN"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    ptx_.clear();
    request_.mutable_device()->mutable_candidate()->mutable_plan()->clear_launches();
    request_.clear_work();
    AddWork("main", 64, true, false);
    Launch("candidate", 64, absl::StrCat(row.body, kTriple));
    const RunnerReport report = RunAnyhow();
    EXPECT_EQ(report.candidate_fault().kind(), GuestFault::DEVICE_FAULT) << report.DebugString();
    EXPECT_EQ(report.candidate_fault().check(), row.check);
  }
}

}  // namespace
}  // namespace assay
