// Levels that measure: runners, ceilings, baselines and pairs, with a fake builder and fake
// runners.
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "worker/testing/pipeline_fixture.h"

namespace assay {
namespace {

using internal::v1::RunnerReport;
using internal::v1::RunnerRequest;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Rates that make the ceiling of "main" (768 bytes of traffic at 64 elements) about `ns`.
void SetBandwidth(double bytes_per_second, v1::Calibration* calibration) {
  calibration->clear_points();
  for (const char* kernel : {"read", "triad", "copy", "write"}) {
    v1::CeilingPoint& point = *calibration->add_points();
    point.set_kernel(kernel);
    point.set_cores(1);
    point.set_footprint_bytes(256);
    point.set_rate_per_second(bytes_per_second);
    point.set_level("L1");
  }
}

TEST_F(PipelineTest, QuickMeasuresInOneRunner) {
  work_.mutable_evaluation()->set_level(v1::QUICK);
  work_.mutable_evaluation()->add_workloads()->set_name("main");
  SetBandwidth(512.0 / 5e-6, calibration_.get());  // x and y, 512 bytes, in 5 us
  ASSERT_OK(Judge());
  EXPECT_EQ(outcome_.verdict(), v1::PASSED);
  ASSERT_EQ(runners_.requests.size(), 1u);
  EXPECT_TRUE(runners_.requests[0].work(1).measure());
  const v1::WorkloadResult& result = outcome_.workload_results(0);
  EXPECT_DOUBLE_EQ(result.measurement().median_ns(), 10'000);
  EXPECT_EQ(result.measurement().sample_count(), 30);
  EXPECT_DOUBLE_EQ(result.measurement().cold().median_ns(), 20'000);
  EXPECT_EQ(result.measurement().protocol(), "cpu-quick-v1");
  EXPECT_EQ(result.measurement().runner_count(), 1);
  EXPECT_THAT(result.measurement().caveats(), ElementsAre("NOT_ISOLATED"));
  EXPECT_EQ(result.ceiling().bound(), v1::Ceiling::MEMORY);
  EXPECT_NEAR(result.efficiency_ratio(), 0.5, 1e-9);
  EXPECT_EQ(result.device(), "workers/w/devices/cpu");
  EXPECT_THAT(outcome_.message(), HasSubstr("50 % of the MEMORY bound"));
}

TEST_F(PipelineTest, RankedStartsThreeRunnersAndReportsTheirSpread) {
  work_.mutable_evaluation()->set_level(v1::RANKED);
  work_.mutable_evaluation()->add_workloads()->set_name("main");
  double next = 10'000;
  runners_.edit = [&next](const RunnerRequest&, RunnerReport* report) {
    for (internal::v1::RunnerWorkloadReport& work : *report->mutable_workloads()) {
      if (!work.has_samples()) continue;
      for (double& ns : *work.mutable_samples()->mutable_warm_ns()) ns = next;
      next += 1'000;
    }
  };
  ASSERT_OK(Judge());
  ASSERT_EQ(runners_.requests.size(), 3u);
  EXPECT_TRUE(runners_.requests[0].work(1).battery());
  ASSERT_EQ(runners_.requests[1].work_size(), 1);
  EXPECT_FALSE(runners_.requests[1].work(0).battery());
  EXPECT_NE(runners_.requests[0].nonce(), runners_.requests[1].nonce());
  const v1::Measurement& measurement = outcome_.workload_results(0).measurement();
  EXPECT_EQ(measurement.runner_count(), 3);
  EXPECT_EQ(measurement.sample_count(), 90);
  EXPECT_DOUBLE_EQ(measurement.median_ns(), 11'000);
  EXPECT_NEAR(measurement.runner_spread_ratio(), 2.0 / 11, 1e-12);
  EXPECT_EQ(measurement.protocol(), "cpu-v1");
  // Each of the three runners checks before it measures.
  EXPECT_THAT(stages_,
              ElementsAre("BUILD", "VERIFY", "MEASURE", "VERIFY", "MEASURE", "VERIFY", "MEASURE"));
}

TEST_F(PipelineTest, EveryRunnerFollowsFromTheNonceThatIsKept) {
  work_.mutable_evaluation()->set_level(v1::RANKED);
  const auto nonces = [this] {
    std::vector<uint64_t> drawn;
    for (const RunnerRequest& request : runners_.requests) drawn.push_back(request.nonce());
    runners_.requests.clear();
    return drawn;
  };
  ASSERT_OK(Judge());
  const uint64_t kept = outcome_.nonce();
  const std::vector<uint64_t> first = nonces();
  EXPECT_NE(kept, 0u);
  EXPECT_EQ(std::set<uint64_t>(first.begin(), first.end()).size(), 3u);
  ASSERT_OK(Judge());
  EXPECT_NE(outcome_.nonce(), kept) << "no replay: fresh inputs";
  EXPECT_NE(nonces(), first);
  // A replay brings it along.
  work_.set_nonce(kept);
  ASSERT_OK(Judge());
  EXPECT_EQ(outcome_.nonce(), kept);
  EXPECT_EQ(nonces(), first);
}

TEST_F(PipelineTest, WhatDoesNotBuildHasANonceToo) {
  builder_.failures["kernel.cc"] = "COMPILE_FAILED";
  ASSERT_OK(Judge());
  EXPECT_EQ(runners_.requests.size(), 0u);
  EXPECT_NE(outcome_.verdict(), v1::PASSED);
  EXPECT_NE(outcome_.nonce(), 0u);
}

TEST_F(PipelineTest, NoiseBecomesACaveat) {
  work_.mutable_evaluation()->set_level(v1::QUICK);
  runners_.edit = [](const RunnerRequest&, RunnerReport* report) {
    report->mutable_workloads(1)->mutable_samples()->set_discarded_count(20);
    report->mutable_workloads(2)->mutable_samples()->set_context_switches(1);
  };
  ASSERT_OK(Judge());
  EXPECT_THAT(outcome_.workload_results(0).measurement().caveats(), Contains("NOISY_ENVIRONMENT"));
  EXPECT_THAT(outcome_.workload_results(1).measurement().caveats(), Contains("NOISY_ENVIRONMENT"));
}

TEST_F(PipelineTest, FasterThanTheCeilingIsImplausibleOnceTheCeilingIsConfirmed) {
  work_.mutable_evaluation()->set_level(v1::QUICK);
  SetBandwidth(512.0 / 20e-6, calibration_.get());  // twice the measured 10 us
  int recalibrations = 0;
  bool was_noise = false;
  recalibrate_ = [&](v1::Calibration* calibration) {
    ++recalibrations;
    if (was_noise) SetBandwidth(512.0 / 9e-6, calibration);
    return absl::OkStatus();
  };
  ASSERT_OK(Judge());
  EXPECT_EQ(outcome_.verdict(), v1::IMPLAUSIBLE) << outcome_.DebugString();
  EXPECT_EQ(outcome_.reason(), "FASTER_THAN_CEILING");
  EXPECT_EQ(recalibrations, 1);
  EXPECT_THAT(outcome_.message(), HasSubstr("efficiency 2.00"));

  // The honest neighbour: the first calibration had been disturbed.
  was_noise = true;
  ASSERT_OK(Judge());
  EXPECT_EQ(outcome_.verdict(), v1::PASSED);
  EXPECT_EQ(recalibrations, 2);
  ASSERT_OK(Judge());
  EXPECT_EQ(recalibrations, 2);  // the better ceiling stays
}

TEST_F(PipelineTest, ATinyKernelIsBoundByTheHandshakeAndNeverAccused) {
  work_.mutable_evaluation()->set_level(v1::QUICK);
  SetBandwidth(1e15, calibration_.get());
  runners_.warm_ns["/artifacts/kernel.cc"] = 100;  // below the handshake of 150 ns
  ASSERT_OK(Judge());
  EXPECT_EQ(outcome_.verdict(), v1::PASSED);
  EXPECT_EQ(outcome_.workload_results(0).ceiling().bound(), v1::Ceiling::LAUNCH);
  EXPECT_LE(outcome_.workload_results(0).efficiency_ratio(), 1.0);
}

TEST_F(PipelineTest, SpeedupsNameTheirBaselineAndItsTimeIsReused) {
  v1::Baseline& baseline = *work_.mutable_problem()->add_baselines();
  baseline.set_name("library");
  baseline.set_source("baseline.cc");
  baseline.add_libraries("openblas");
  runners_.warm_ns["/artifacts/baseline.cc"] = 25'000;
  work_.mutable_evaluation()->set_level(v1::QUICK);
  ASSERT_OK(Judge());
  ASSERT_EQ(outcome_.workload_results(0).baselines_size(), 1);
  EXPECT_EQ(outcome_.workload_results(0).baselines(0).name(), "library");
  EXPECT_DOUBLE_EQ(outcome_.workload_results(0).baselines(0).speedup_ratio(), 2.5);
  EXPECT_THAT(builder_.requests.back().libraries, ElementsAre("openblas"));
  ASSERT_EQ(runners_.requests.size(), 2u);
  // Guests may load what the baselines of their request name: a candidate has none.
  EXPECT_EQ(runners_.requests[0].problem().baselines_size(), 0);
  ASSERT_EQ(runners_.requests[1].problem().baselines_size(), 1);
  EXPECT_THAT(runners_.requests[1].problem().baselines(0).libraries(), ElementsAre("openblas"));
  ASSERT_OK(Judge());
  EXPECT_EQ(runners_.requests.size(), 3u);  // the candidate's alone
  clock_.Advance(absl::Minutes(11));
  ASSERT_OK(Judge());
  EXPECT_EQ(runners_.requests.size(), 5u);

  clock_.Advance(absl::Minutes(11));
  builder_.failures["baseline.cc"] = "COMPILE_FAILED";
  ASSERT_OK(Judge());
  EXPECT_EQ(outcome_.verdict(), v1::INVALID_PROBLEM);
  EXPECT_EQ(outcome_.reason(), "BASELINE_FAILED");
}

TEST_F(PipelineTest, ABaselineWhoseLibraryIsMissingIsLeftOut) {
  v1::Baseline& library = *work_.mutable_problem()->add_baselines();
  library.set_name("openblas");
  library.set_source("baseline.cc");
  library.add_libraries("openblas");
  v1::Baseline& plain = *work_.mutable_problem()->add_baselines();
  plain.set_name("plain");
  plain.set_source("plain.cc");
  builder_.statuses["baseline.cc"] =
      ErrorWithReason(absl::StatusCode::kUnavailable, kLibraryNotInstalled, "install it");
  work_.mutable_evaluation()->set_level(v1::QUICK);
  ASSERT_OK(Judge());
  EXPECT_EQ(outcome_.verdict(), v1::PASSED) << outcome_.DebugString();
  const v1::WorkloadResult& result = outcome_.workload_results(0);
  ASSERT_EQ(result.baselines_size(), 1);
  EXPECT_EQ(result.baselines(0).name(), "plain");
  EXPECT_THAT(result.measurement().caveats(), ElementsAre("NOT_ISOLATED", "BASELINE_UNAVAILABLE"));
  EXPECT_THAT(outcome_.message(), HasSubstr("baseline openblas is not available on this worker"));

  // Whatever else ails the builder stays a failure of the infrastructure.
  clock_.Advance(absl::Minutes(11));
  builder_.statuses["baseline.cc"] = absl::UnavailableError("disk full");
  EXPECT_THAT(Judge(), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(PipelineTest, PairsAlternateInBlocks) {
  work_.mutable_evaluation()->set_level(v1::PAIRED);
  work_.mutable_evaluation()->set_pair_count(6);
  work_.mutable_evaluation()->add_workloads()->set_name("main");
  FillCandidate("base.cc", work_.mutable_baseline_candidate());
  runners_.warm_ns["/artifacts/base.cc"] = 20'000;
  ASSERT_OK(Judge());
  EXPECT_EQ(outcome_.verdict(), v1::PASSED) << outcome_.DebugString();
  ASSERT_EQ(outcome_.pairs_size(), 6);
  ASSERT_EQ(runners_.requests.size(), 2u + 12u);  // both verified, then the pairs
  for (int i = 0; i < 6; ++i) {
    EXPECT_DOUBLE_EQ(outcome_.pairs(i).baseline_ns(), 20'000);
    EXPECT_DOUBLE_EQ(outcome_.pairs(i).candidate_ns(), 10'000);
    const RunnerRequest& first = runners_.requests[2 + 2 * static_cast<size_t>(i)];
    EXPECT_EQ(absl::EndsWith(first.candidate_artifact(), "kernel.cc"),
              outcome_.pairs(i).candidate_first());
    if (i % 2 == 1) {
      EXPECT_NE(outcome_.pairs(i).candidate_first(), outcome_.pairs(i - 1).candidate_first());
    }
  }
  EXPECT_EQ(outcome_.workload_results(0).measurement().runner_count(), 6);

  builder_.failures["base.cc"] = "COMPILE_FAILED";
  ASSERT_OK(Judge());
  EXPECT_EQ(outcome_.verdict(), v1::INVALID_PROBLEM);
}

}  // namespace
}  // namespace assay
