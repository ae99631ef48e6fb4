#include "assay/internal/v1/runner.pb.h"
#include "assay/v1/candidate.pb.h"
#include "assay/v1/evaluation.pb.h"
#include "assay/v1/problem.pb.h"
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
                         "device_checks", "order_dependence", "stale_output", "carried_state",
                         "clock_dependence", "hidden_work", "faster_than_ceiling",
                         "derived_answers", "device_timers", "idle_launch", "precision_downgrade",
                         "bimodal_times", "approximation_dependence", "fp_environment",
                         "device_instructions", "precision_instructions", "library_calls",
                         "embedded_binary", "forbidden_source", "reviewer_text"));
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

TEST(CarriedStateDetectorTest, KindsAndWhatTheyProve) {
  using internal::v1::CarriedState;
  const struct {
    CarriedState::Kind kind;
    int severity;
    const char* reason;
  } rows[] = {
      {CarriedState::STALE_ANSWER, v1::Finding::PROOF, "STALE_OUTPUT"},
      {CarriedState::WRONG_LATER, v1::Finding::PROOF, "PHASE_DEPENDENT"},
      {CarriedState::LESS_WORK, v1::Finding::PROOF, "WORK_CARRIED"},
      {CarriedState::NEEDS_RESET, v1::Finding::NOTICE, ""},
      {CarriedState::MORE_WORK, v1::Finding::SUSPECT, ""},
      {CarriedState::OTHER_BITS, v1::Finding::NOTICE, ""},
      {CarriedState::KEPT_CONSTANTS, v1::Finding::NOTICE, ""},
  };
  internal::v1::RunnerReport report;
  internal::v1::RunnerWorkloadReport& work = *report.add_workloads();
  work.set_workload("main");
  Evidence evidence;
  evidence.reports = {&report};
  EXPECT_THAT(MakeCarriedStateDetector()->Inspect(evidence), IsEmpty());
  for (const auto& row : rows) {
    SCOPED_TRACE(CarriedState::Kind_Name(row.kind));
    CarriedState& found = *work.mutable_carried_state();
    found.set_kind(row.kind);
    found.set_call(4);
    found.set_earlier_call(3);
    found.set_input_seed(99);
    found.set_thread_instructions(70);
    found.set_fresh_thread_instructions(7'000);
    const auto findings = MakeCarriedStateDetector()->Inspect(evidence);
    ASSERT_THAT(findings, SizeIs(1));
    EXPECT_EQ(findings[0].severity, row.severity);
    EXPECT_EQ(findings[0].verdict, *row.reason == 0 ? 0 : v1::GAMED);
    EXPECT_EQ(findings[0].reason, row.reason);
    EXPECT_EQ(findings[0].workload, "main");
    EXPECT_THAT(findings[0].evidence, HasSubstr("call 4"));
    EXPECT_THAT(findings[0].evidence, HasSubstr("seed 99"));
    EXPECT_THAT(findings[0].evidence, HasSubstr("70 thread instructions as it stood, 7000"));
  }
}

TEST(ClockDependenceDetectorTest, AWrongOutputIsProofOtherWorkIsSuspect) {
  internal::v1::RunnerReport report;
  internal::v1::RunnerWorkloadReport& work = *report.add_workloads();
  Evidence evidence;
  evidence.reports = {&report};
  EXPECT_THAT(MakeClockDependenceDetector()->Inspect(evidence), IsEmpty());
  work.mutable_clock_dependence()->set_thread_instructions(40);
  work.mutable_clock_dependence()->set_other_thread_instructions(80);
  for (const char* reason : {"", "TIMED_OUT", "MISMATCH"}) {
    SCOPED_TRACE(reason);
    work.mutable_clock_dependence()->set_reason(reason);
    const auto findings = MakeClockDependenceDetector()->Inspect(evidence);
    ASSERT_THAT(findings, SizeIs(1));
    const bool proven = std::string_view(reason) == "MISMATCH";
    EXPECT_EQ(findings[0].severity, proven ? v1::Finding::PROOF : v1::Finding::SUSPECT);
    EXPECT_EQ(findings[0].reason, proven ? "CLOCK_DEPENDENT" : "");
    EXPECT_THAT(findings[0].evidence, HasSubstr("40 thread instructions, and 80"));
  }
}

TEST(IdleLaunchDetectorTest, IdleInEveryWorkloadIsSuspectInSomeIsNot) {
  internal::v1::RunnerReport report;
  for (const char* name : {"small", "large"}) {
    internal::v1::RunnerWorkloadReport& work = *report.add_workloads();
    work.set_workload(name);
    work.mutable_observed()->set_launches(2);
  }
  Evidence evidence;
  evidence.reports = {&report};
  EXPECT_THAT(MakeIdleLaunchDetector()->Inspect(evidence), IsEmpty());
  const auto add = [&](int index) {
    internal::v1::KnockedOutLaunch& idle = *report.mutable_workloads(index)->add_idle_launches();
    idle.set_launch(1);
    idle.set_kernel("decoy");
    idle.set_input_seed(99);
  };
  add(0);
  EXPECT_THAT(MakeIdleLaunchDetector()->Inspect(evidence), IsEmpty()) << "the other may need it";
  add(1);
  v1::Problem problem;
  for (const auto& work : report.workloads()) problem.add_workloads()->set_name(work.workload());
  evidence.problem = &problem;
  auto findings = MakeIdleLaunchDetector()->Inspect(evidence);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].severity, v1::Finding::SUSPECT);
  EXPECT_EQ(findings[0].verdict, 0);
  EXPECT_THAT(findings[0].evidence, HasSubstr("launch 1 of the plan, kernel decoy"));
  EXPECT_THAT(findings[0].evidence, HasSubstr("seed 99"));
  // One that nobody asked for may need it.
  problem.add_workloads()->set_name("wide");
  findings = MakeIdleLaunchDetector()->Inspect(evidence);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].severity, v1::Finding::NOTICE);
  problem.mutable_workloads()->RemoveLast();
  // One that was too large to look at may need it too.
  report.add_workloads()->set_workload("huge");
  findings = MakeIdleLaunchDetector()->Inspect(evidence);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].severity, v1::Finding::NOTICE);
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

// A product of 64 x 64 x 64 in f32: honest sums stay below 4.3e-6.
class PrecisionDowngradeTest : public ::testing::Test {
 protected:
  PrecisionDowngradeTest() {
    for (const char* name : {"m", "n", "k"}) problem_.add_axes()->set_name(name);
    AddTensor("a", "m", "k", v1::Tensor::INPUT);
    AddTensor("b", "k", "n", v1::Tensor::INPUT);
    AddTensor("c", "m", "n", v1::Tensor::OUTPUT);
    AddPermutation("a", 0);
    AddPermutation("b", 1);
    contract_ = problem_.add_contracts();
    contract_->set_name("f32");
    contract_->set_accumulator(v1::F32);
    result_.set_workload("main");
    for (const char* name : {"m", "n", "k"}) (*result_.mutable_axes())[name] = 64;
    report_.add_workloads()->set_workload("main");
    evidence_.reports = {&report_};
    evidence_.results = {&result_};
    evidence_.problem = &problem_;
  }

  void AddTensor(const char* name, const char* rows, const char* cols, v1::Tensor::Role role) {
    v1::Tensor& tensor = *problem_.add_tensors();
    tensor.set_name(name);
    tensor.set_dtype(v1::F32);
    tensor.set_role(role);
    tensor.add_shape(rows);
    tensor.add_shape(cols);
    tensor.set_scalable(role == v1::Tensor::INPUT);
  }

  // Along one dimension of an input and of c: what is left of the input is summed.
  void AddPermutation(const char* input, int dimension) {
    v1::Transform::Permutation& permutation = *problem_.add_transforms()->mutable_permutation();
    permutation.add_inputs()->set_tensor(input);
    permutation.mutable_inputs(0)->set_dimension(dimension);
    permutation.add_outputs()->set_tensor("c");
    permutation.mutable_outputs(0)->set_dimension(dimension);
  }

  internal::v1::PrecisionEvidence& Add(const char* input_case, double error) {
    internal::v1::PrecisionEvidence& out = *report_.mutable_workloads(0)->add_precision();
    out.set_tensor("c");
    out.set_input_case(input_case);
    out.set_relative_l2(error);
    out.set_element_count(4096);
    return out;
  }

  std::vector<DetectorFinding> Inspect() {
    return MakePrecisionDowngradeDetector()->Inspect(evidence_);
  }

  v1::Problem problem_;
  v1::ArithmeticContract* contract_ = nullptr;
  v1::WorkloadResult result_;
  internal::v1::RunnerReport report_;
  Evidence evidence_;
};

TEST_F(PrecisionDowngradeTest, HonestArithmeticIsNotSuspected) {
  Add("x1", 4e-7).set_zero_trailing_bits(0);
  Add("x1", 2e-6).set_zero_trailing_bits(-1);
  Add("exact_integers", 0).set_zero_trailing_bits(-1);
  EXPECT_THAT(Inspect(), IsEmpty());
}

TEST_F(PrecisionDowngradeTest, EachSignIsASuspicionWithItsNumbers) {
  Add("x1", 3e-5).set_zero_trailing_bits(13);
  Add("exact_integers", 2e-4).set_inexact_count(4000);
  const auto findings = Inspect();
  ASSERT_THAT(findings, SizeIs(3));
  for (const DetectorFinding& finding : findings) {
    EXPECT_EQ(finding.severity, v1::Finding::SUSPECT);
    EXPECT_EQ(finding.verdict, 0);
    EXPECT_EQ(finding.workload, "main");
  }
  EXPECT_THAT(findings[0].evidence, HasSubstr("last 13 mantissa bits"));
  EXPECT_THAT(findings[1].evidence, HasSubstr("relative L2 error 3e-05 of c"));
  EXPECT_THAT(findings[2].evidence, HasSubstr("4000 of 4096 elements"));
}

TEST_F(PrecisionDowngradeTest, TheContractDecidesWhatIsHonest) {
  Add("x1", 3e-4).set_zero_trailing_bits(-1);
  EXPECT_THAT(Inspect(), SizeIs(1));
  contract_->add_operand_roundings(v1::ArithmeticContract::TF32);
  EXPECT_THAT(Inspect(), IsEmpty());
  report_.mutable_workloads(0)->mutable_precision(0)->set_zero_trailing_bits(13);
  EXPECT_THAT(Inspect(), IsEmpty());
  report_.mutable_workloads(0)->mutable_precision(0)->set_zero_trailing_bits(14);
  EXPECT_THAT(Inspect(), SizeIs(1));
  report_.mutable_workloads(0)->mutable_precision(0)->set_zero_trailing_bits(-1);
  contract_->clear_operand_roundings();
  contract_->set_accumulator(v1::F16);
  EXPECT_THAT(Inspect(), IsEmpty());
  contract_->set_accumulator(v1::F64);
  EXPECT_THAT(Inspect(), SizeIs(1));
  problem_.clear_contracts();  // nobody promised anything
  EXPECT_THAT(Inspect(), IsEmpty());
}

TEST_F(PrecisionDowngradeTest, NamesHowTheErrorGrows) {
  Add("x1", 1e-5).set_zero_trailing_bits(-1);
  internal::v1::RunnerWorkloadReport& longer = *report_.add_workloads();
  longer.set_workload("long_k");
  internal::v1::PrecisionEvidence& seen = *longer.add_precision();
  seen.set_tensor("c");
  seen.set_input_case("x1");
  seen.set_relative_l2(4e-5);
  const auto findings = Inspect();
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_THAT(findings[0].evidence, HasSubstr("from 1e-05 (main) to 4e-05 (long_k)"));
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

TEST(FasterThanCeilingTest, SingleSamplesAreNotedAndImpossibleOnesSuspect) {
  const struct {
    std::vector<double> warm_ns;
    v1::Ceiling::Bound bound;
    int severity;  // 0: no finding
  } rows[] = {{{200, 210, 96}, v1::Ceiling::MEMORY, 0},
              {{200, 210, 90}, v1::Ceiling::MEMORY, v1::Finding::NOTICE},
              {{200, 210, 49}, v1::Ceiling::MEMORY, v1::Finding::SUSPECT},
              {{200, 210, 49}, v1::Ceiling::LAUNCH, 0}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.warm_ns.back());
    v1::WorkloadResult result;
    result.mutable_measurement()->set_median_ns(200);
    v1::RunnerSamples& runner = *result.mutable_measurement()->add_runners();
    runner.mutable_warm_ns()->Add(row.warm_ns.begin(), row.warm_ns.end());
    result.mutable_ceiling()->set_time_ns(100);
    result.mutable_ceiling()->set_bound(row.bound);
    result.set_efficiency_ratio(0.5);
    Evidence evidence;
    evidence.results = {&result};
    const auto findings = MakeFasterThanCeilingDetector()->Inspect(evidence);
    ASSERT_THAT(findings, SizeIs(row.severity == 0 ? 0 : 1));
    if (row.severity == 0) continue;
    EXPECT_EQ(findings[0].severity, row.severity);
    EXPECT_EQ(findings[0].verdict, 0);
    EXPECT_THAT(findings[0].evidence, HasSubstr("1 of 3 samples lie below 100 ns"));
  }
}

TEST(DerivedAnswersDetectorTest, SuspectsLargeGainsAndNotesSmallOnes) {
  internal::v1::RunnerReport report;
  internal::v1::RunnerWorkloadReport& work = *report.add_workloads();
  Evidence evidence;
  evidence.reports = {&report};
  EXPECT_THAT(MakeDerivedAnswersDetector()->Inspect(evidence), IsEmpty());
  work.set_new_base_ns(1'190);
  work.set_derived_ns(100);
  auto findings = MakeDerivedAnswersDetector()->Inspect(evidence);
  ASSERT_THAT(findings, SizeIs(1));
  EXPECT_EQ(findings[0].severity, v1::Finding::NOTICE);
  work.set_new_base_ns(1'210);
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
