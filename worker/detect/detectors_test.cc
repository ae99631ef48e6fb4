#include "assay/internal/v1/runner.pb.h"
#include "assay/v1/candidate.pb.h"
#include "assay/v1/evaluation.pb.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "worker/detect/detector.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(DetectorsTest, NamesAreDistinctAndStable) {
  std::vector<std::string> names;
  for (const auto& detector : AllDetectors()) names.emplace_back(detector->name());
  EXPECT_THAT(names, ::testing::ElementsAre(
                         "device_checks", "order_dependence", "stale_output", "hidden_work",
                         "faster_than_ceiling", "derived_answers", "device_timers", "bimodal_times",
                         "approximation_dependence", "fp_environment", "device_instructions",
                         "precision_instructions", "library_calls", "embedded_binary",
                         "forbidden_source", "reviewer_text"));
}

// A wrong output in one order is proof; sums that round differently are worth knowing, no more.
TEST(OrderDependenceTest, OnlyAWrongOutputCondemns) {
  internal::v1::RunnerReport report;
  internal::v1::RunnerWorkloadReport& work = *report.add_workloads();
  work.set_workload("main");
  Evidence evidence;
  evidence.reports = {&report};
  EXPECT_THAT(MakeOrderDependenceDetector()->Inspect(evidence), IsEmpty());
  internal::v1::OrderDependence& found = *work.mutable_order_dependence();
  found.set_input_case("x1");
  found.set_input_seed(99);
  found.set_other_order(1234);
  found.set_tensor("y");
  found.add_index(3);
  found.add_index(5);
  found.set_first_value(0.5);
  found.set_other_value(0.25);
  found.set_replayable(true);
  auto findings = MakeOrderDependenceDetector()->Inspect(evidence);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].severity, v1::Finding::NOTICE);
  EXPECT_EQ(findings[0].workload, "main");
  EXPECT_THAT(findings[0].evidence,
              HasSubstr("y[3,5] is 0.5 in the natural order and 0.25 in order 1234"));
  EXPECT_THAT(findings[0].evidence, HasSubstr("case x1, seed 99"));
  EXPECT_THAT(findings[0].evidence, HasSubstr("within the tolerance"));

  found.set_wrong(true);
  work.set_reason("MISMATCH");
  // Wrong in every order: the mismatch says it, and nothing is proven of orders.
  EXPECT_EQ(MakeOrderDependenceDetector()->Inspect(evidence)[0].severity, v1::Finding::NOTICE);
  work.set_nondeterministic(true);
  findings = MakeOrderDependenceDetector()->Inspect(evidence);
  EXPECT_EQ(findings[0].severity, v1::Finding::PROOF);
  EXPECT_EQ(findings[0].verdict, v1::NONDETERMINISTIC);
  EXPECT_EQ(findings[0].reason, "MISMATCH");
}

TEST(ApproximationDependenceTest, IsNoProof) {
  internal::v1::RunnerReport report;
  internal::v1::RunnerWorkloadReport& work = *report.add_workloads();
  Evidence evidence;
  evidence.reports = {&report};
  EXPECT_THAT(MakeApproximationDependenceDetector()->Inspect(evidence), IsEmpty());
  v1::Mismatch& mismatch = *work.mutable_approximation_dependence()->mutable_mismatch();
  mismatch.set_tensor("y");
  mismatch.add_index(7);
  mismatch.set_got(1.5);
  mismatch.set_want(2);
  const auto findings = MakeApproximationDependenceDetector()->Inspect(evidence);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].severity, v1::Finding::NOTICE);
  EXPECT_EQ(findings[0].verdict, 0);
  EXPECT_THAT(findings[0].evidence, HasSubstr("y[7] is 1.5, expected 2"));
}

TEST(DeviceChecksTest, AFaultIsProofAtItsLineATrapIsNot) {
  internal::v1::RunnerReport report;
  internal::v1::GuestFault& fault = *report.mutable_candidate_fault();
  fault.set_kind(internal::v1::GuestFault::DEVICE_FAULT);
  fault.set_check("SHARED_RACE");
  fault.set_file("kernel.cu");
  fault.set_line(7);
  fault.set_workload("main");
  Evidence evidence;
  evidence.reports.push_back(&report);
  const std::vector<DetectorFinding> findings = MakeDeviceChecksDetector()->Inspect(evidence);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].verdict, v1::UNDEFINED_BEHAVIOR);
  EXPECT_EQ(findings[0].reason, "SHARED_RACE");
  EXPECT_EQ(findings[0].file, "kernel.cu");
  EXPECT_EQ(findings[0].line, 7);
  fault.set_kind(internal::v1::GuestFault::DEVICE_TRAP);
  EXPECT_TRUE(MakeDeviceChecksDetector()->Inspect(evidence).empty());
}

TEST(StaleOutputTest, AnEarlierAnswerIsProofAWrongOneIsNot) {
  internal::v1::RunnerReport report;
  internal::v1::RunnerWorkloadReport& work = *report.add_workloads();
  work.set_workload("main");
  work.set_reason("MISMATCH");
  work.set_failed_timed_call(4);
  Evidence evidence;
  evidence.reports = {&report};
  EXPECT_THAT(MakeStaleOutputDetector()->Inspect(evidence), IsEmpty());
  work.set_stale_source("timed call 3");
  const auto findings = MakeStaleOutputDetector()->Inspect(evidence);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].severity, v1::Finding::PROOF);
  EXPECT_EQ(findings[0].verdict, v1::GAMED);
  EXPECT_EQ(findings[0].reason, "STALE_OUTPUT");
  EXPECT_THAT(findings[0].evidence, HasSubstr("timed call 3"));
}

TEST(HiddenWorkDetectorTest, OnlyThatFault) {
  internal::v1::RunnerReport report;
  report.mutable_candidate_fault()->set_kind(internal::v1::GuestFault::SIGNAL);
  Evidence evidence;
  evidence.reports = {&report};
  EXPECT_THAT(MakeHiddenWorkDetector()->Inspect(evidence), IsEmpty());
  report.mutable_candidate_fault()->set_kind(internal::v1::GuestFault::HIDDEN_WORK);
  report.mutable_candidate_fault()->set_workload("main");
  internal::v1::RunnerWorkloadReport& work = *report.add_workloads();
  work.set_workload("main");
  work.set_hidden_ns(88'800);
  work.set_empty_outside_ns(1'200);
  const auto findings = MakeHiddenWorkDetector()->Inspect(evidence);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].reason, "HIDDEN_WORK");
  EXPECT_THAT(findings[0].evidence, HasSubstr("88800 ns, an empty call needs 1200 ns"));
}

TEST(HiddenWorkDetectorTest, WhatTheKernelCannotTellIsSuspect) {
  internal::v1::RunnerReport report;
  internal::v1::RunnerWorkloadReport& work = *report.add_workloads();
  Evidence evidence;
  evidence.reports = {&report};
  EXPECT_THAT(MakeHiddenWorkDetector()->Inspect(evidence), IsEmpty()) << "not measured";
  work.mutable_samples()->add_warm_ns(100);
  const auto findings = MakeHiddenWorkDetector()->Inspect(evidence);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].severity, v1::Finding::SUSPECT);
  EXPECT_EQ(findings[0].verdict, 0);
  work.set_empty_outside_ns(3'000);
  EXPECT_THAT(MakeHiddenWorkDetector()->Inspect(evidence), IsEmpty());
}

TEST(FasterThanCeilingTest, ColdCallsHaveTheSameCeiling) {
  v1::WorkloadResult result;
  result.mutable_measurement()->set_median_ns(1'000);
  result.mutable_measurement()->mutable_cold()->set_median_ns(50);
  result.mutable_ceiling()->set_time_ns(100);
  result.set_efficiency_ratio(0.1);
  Evidence evidence;
  evidence.results = {&result};
  const auto findings = MakeFasterThanCeilingDetector()->Inspect(evidence);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].reason, "FASTER_THAN_CEILING");
  EXPECT_THAT(findings[0].evidence, HasSubstr("cold caches"));
}

TEST(DerivedAnswersDetectorTest, SuspectsLargeGainsAndNotesSmallOnes) {
  internal::v1::RunnerReport report;
  internal::v1::RunnerWorkloadReport& work = *report.add_workloads();
  Evidence evidence;
  evidence.reports = {&report};
  EXPECT_THAT(MakeDerivedAnswersDetector()->Inspect(evidence), IsEmpty());
  work.set_new_base_ns(390);
  work.set_derived_ns(100);
  auto findings = MakeDerivedAnswersDetector()->Inspect(evidence);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].severity, v1::Finding::NOTICE);
  work.set_new_base_ns(410);
  findings = MakeDerivedAnswersDetector()->Inspect(evidence);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].severity, v1::Finding::SUSPECT);
}

TEST(FasterThanCeilingTest, AboveTheMarginOnly) {
  v1::WorkloadResult result;
  result.set_workload("main");
  result.mutable_measurement()->set_median_ns(100);
  result.mutable_ceiling()->set_time_ns(104);
  result.set_efficiency_ratio(1.04);
  Evidence evidence;
  evidence.results = {&result};
  EXPECT_THAT(MakeFasterThanCeilingDetector()->Inspect(evidence), IsEmpty());
  result.set_efficiency_ratio(1.06);
  const auto findings = MakeFasterThanCeilingDetector()->Inspect(evidence);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].verdict, v1::IMPLAUSIBLE);
  EXPECT_EQ(findings[0].reason, "FASTER_THAN_CEILING");
}

v1::WorkloadResult ResultWithTimes(const std::vector<double>& times) {
  v1::WorkloadResult result;
  result.set_workload("main");
  v1::RunnerSamples& samples = *result.mutable_measurement()->add_runners();
  samples.mutable_warm_ns()->Add(times.begin(), times.end());
  return result;
}

TEST(BimodalTimesTest, TwoGroupsAreNoticedOneIsNot) {
  constexpr uint64_t kSeed = 99;
  SCOPED_TRACE(kSeed);
  Random random(kSeed);
  std::vector<double> one;
  std::vector<double> two;
  std::vector<double> outliers;
  for (int i = 0; i < 100; ++i) {
    const double noise = 20 * random.Uniform();
    one.push_back(1000 + 5 * noise);
    two.push_back((i % 3 == 0 ? 1200 : 1000) + noise);
    outliers.push_back((i % 20 == 0 ? 5000 : 1000) + noise);
  }
  const struct {
    const char* name;
    std::vector<double> times;
    size_t findings;
  } rows[] = {{"one", one, 0}, {"two", two, 1}, {"outliers", outliers, 0}, {"few", {1, 2}, 0}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const v1::WorkloadResult result = ResultWithTimes(row.times);
    Evidence evidence;
    evidence.results = {&result};
    const auto findings = MakeBimodalTimesDetector()->Inspect(evidence);
    ASSERT_THAT(findings, SizeIs(row.findings));
    for (const DetectorFinding& finding : findings) {
      EXPECT_EQ(finding.severity, v1::Finding::NOTICE);
    }
  }
}

TEST(ForbiddenSourceTest, WordsInCodeWithTheirLines) {
  v1::Candidate candidate;
  v1::SourceFile& file = *candidate.add_files();
  file.set_path("kernel.cc");
  file.set_content(
      "// rdtsc in a comment\n"
      "/* clock_gettime\n"
      "   syscall */ int my_syscalls = 0;\n"
      "asm volatile(\"rdtsc\" : \"=a\"(t));\n"
      "auto t = __rdpmc(0);\n");
  Evidence evidence;
  evidence.candidate = &candidate;
  const auto findings = MakeForbiddenSourceDetector()->Inspect(evidence);
  ASSERT_THAT(findings, SizeIs(2));
  EXPECT_EQ(findings[0].line, 4);
  EXPECT_EQ(findings[0].file, "kernel.cc");
  EXPECT_THAT(findings[0].evidence, HasSubstr("rdtsc"));
  EXPECT_EQ(findings[1].line, 5);
  EXPECT_EQ(findings[1].severity, v1::Finding::NOTICE);
}

}  // namespace
}  // namespace assay
