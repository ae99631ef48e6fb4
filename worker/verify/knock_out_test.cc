// Plans with launches that do nothing, and with such that only seem to, through the runner's one
// entry.
#include "worker/verify/knock_out.h"

#include "gmock/gmock.h"
#include "worker/testing/emulated_fixture.h"

namespace assay {
namespace {

constexpr char kCount[] = ".global .align 4 .u32 count;\n";
constexpr char kClear[] = "mov.u64 %d5, count; mov.u32 %r4, 0; st.global.u32 [%d5], %r4;";
constexpr char kToWork[] = "ld.param.u64 %d5, [work]; st.global.u32 [%d5], %r0;";
constexpr char kByTicket[] =
    "mov.u64 %d5, count; atom.global.add.u32 %r4, [%d5], 1; setp.ge.u32 %p0, %r4, 64;"
    "@%p0 bra over; mul.wide.u32 %d6, %r4, 4; add.u64 %d7, %d0, %d6; add.u64 %d8, %d1, %d6;"
    "ld.global.f32 %f0, [%d7]; mul.f32 %f1, %f0, 0f40400000; st.global.f32 [%d8], %f1; over:";
// The work holds 0 of launch "to_work".
constexpr char kFromWork[] =
    "ld.param.u64 %d5, [work]; ld.global.u32 %r4, [%d5]; add.u32 %r4, %r4, 3;"
    "cvt.rn.f32.u32 %f2, %r4; ld.global.f32 %f0, [%d2]; mul.f32 %f1, %f0, %f2;"
    "st.global.f32 [%d3], %f1;";

struct PlannedLaunch {
  const char* kernel;
  int threads;
  const char* body;
};

class KnockOutTest : public EmulatedRunnerTest {};

TEST_F(KnockOutTest, LaunchesThatDoNothingAreNamed) {
  const struct {
    const char* name;
    std::vector<PlannedLaunch> plan;
    std::vector<int> idle;
  } rows[] = {
      {"one launch", {{"triple", 64, kTriple}}, {}},
      {"a decoy before", {{"decoy", 1, kToWork}, {"triple", 64, kTriple}}, {0}},
      {"a decoy after", {{"triple", 64, kTriple}, {"decoy", 1, kToWork}}, {1}},
      {"the same twice", {{"first", 64, kTriple}, {"second", 64, kTriple}}, {0, 1}},
      {"two stages", {{"to_work", 1, kToWork}, {"from_work", 64, kFromWork}}, {}},
      {"a counter cleared before", {{"clear", 1, kClear}, {"ticket", 64, kByTicket}}, {}},
      {"a counter cleared after", {{"ticket", 64, kByTicket}, {"clear", 1, kClear}}, {}},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    ptx_.clear();
    request_.mutable_device()->mutable_candidate()->mutable_plan()->clear_launches();
    request_.clear_work();
    AddWork("main", 64, true, false);
    Declare(kCount);
    for (const PlannedLaunch& launch : row.plan) {
      Launch(launch.kernel, launch.threads, launch.body);
    }
    const RunnerReport report = RunDevice();
    const RunnerWorkloadReport& work = report.workloads(0);
    EXPECT_TRUE(work.verification().passed()) << report.DebugString();
    EXPECT_FALSE(work.has_carried_state()) << report.DebugString();
    std::vector<int> idle;
    for (const internal::v1::KnockedOutLaunch& launch : work.idle_launches()) {
      idle.push_back(launch.launch());
      EXPECT_EQ(launch.kernel(), row.plan[static_cast<size_t>(launch.launch())].kernel);
      EXPECT_NE(launch.input_seed(), 0u);
    }
    EXPECT_EQ(idle, row.idle) << report.DebugString();
  }
}

// Without its second launch the outputs have ten bits, which says nothing of the candidate's.
TEST_F(KnockOutTest, WhatIsLeftOutSaysNothingOfPrecision) {
  Launch("coarse", 64,
         "ld.global.f32 %f0, [%d2]; mul.f32 %f1, %f0, 0f40400000; mov.b32 %r4, %f1;"
         "and.b32 %r4, %r4, 0xffffe000; st.global.u32 [%d3], %r4;");
  Launch("fine", 64, kTriple);
  AddWork("main", 64, true, false);
  const RunnerReport report = RunDevice();
  ASSERT_EQ(report.workloads(0).precision_size(), 1) << report.DebugString();
  EXPECT_EQ(report.workloads(0).precision(0).zero_trailing_bits(), 0) << report.DebugString();
}

// Nominal inputs are below a hundred; what is larger needs the second launch.
TEST_F(KnockOutTest, ALaunchThatSomeCaseNeedsIsNone) {
  DrawIntegers();
  v1::InputCase& large = *request_.mutable_problem()->add_input_cases();
  large.set_name("large");
  v1::InputCase::Override& larger = *large.add_overrides();
  larger.set_tensor("x");
  larger.mutable_distribution()->mutable_uniform_int()->set_low(1000);
  larger.mutable_distribution()->mutable_uniform_int()->set_high(2000);
  Launch("small", 64,
         "ld.global.f32 %f0, [%d2]; min.f32 %f0, %f0, 0f42c80000; mul.f32 %f1, %f0, 0f40400000;"
         "st.global.f32 [%d3], %f1;");
  Launch("large", 64,
         "ld.global.f32 %f0, [%d2]; setp.le.f32 %p0, %f0, 0f42c80000; @%p0 bra over;"
         "mul.f32 %f1, %f0, 0f40400000; st.global.f32 [%d3], %f1; over:");
  AddWork("main", 64, true, false);
  const RunnerReport report = RunDevice();
  EXPECT_TRUE(report.workloads(0).verification().passed()) << report.DebugString();
  EXPECT_EQ(report.workloads(0).idle_launches_size(), 0) << report.DebugString();
}

}  // namespace
}  // namespace assay
