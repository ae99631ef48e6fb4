// The pipeline with a fake builder and fake runners: every row of the verdict mapping.
#include "worker/agent/pipeline.h"

#include <deque>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "assay/internal/v1/dispatch.pb.h"
#include "assay/internal/v1/runner.pb.h"
#include "assay/v1/fleet.pb.h"
#include "base/status.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "kernels/problem.h"
#include "worker/agent/canary.h"
#include "worker/testing/fake_guest.h"

namespace assay {
namespace {

using internal::v1::GuestFault;
using internal::v1::RunnerReport;
using internal::v1::RunnerRequest;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Answers by the name of the first source.
class FakeBuilder : public Builder {
 public:
  const std::string& compiler() const override { return compiler_; }
  absl::StatusOr<BuildResult> Build(const BuildRequest& request) override {
    requests.push_back(request);
    const std::string source = request.sources.empty() ? "" : request.sources[0];
    const auto status = statuses.find(source);
    if (status != statuses.end()) return status->second;
    BuildResult result;
    const auto failure = failures.find(source);
    if (failure != failures.end()) {
      result.reason = failure->second;
      result.diagnostics.push_back({v1::Diagnostic::ERROR, source, 3, 7, "expected ';'"});
      return result;
    }
    result.ok = true;
    result.artifact_path = absl::StrCat("/artifacts/", source);
    result.artifact_digest = absl::StrCat("digest of ", source);
    return result;
  }

  std::map<std::string, std::string> failures;
  std::map<std::string, absl::Status> statuses;
  std::vector<BuildRequest> requests;

 private:
  const std::string compiler_ = "fake++ 1";
};

// Answers every request with right reports, 10 us (or `warm_ns` by artifact) where it measures,
// unless `edit` changes them.
class FakeRunners : public RunnerSource {
 public:
  absl::StatusOr<std::unique_ptr<RunnerClient>> Take() override {
    return std::make_unique<Client>(this);
  }
  void Refill(int guests) override {
    ++refills;
    refill_guests = guests;
  }

  std::vector<RunnerRequest> requests;
  std::function<void(const RunnerRequest&, RunnerReport*)> edit;
  std::map<std::string, double> warm_ns;
  absl::Status status;
  int refills = 0;
  int refill_guests = 0;

 private:
  class Client : public RunnerClient {
   public:
    explicit Client(FakeRunners* owner) : owner_(*owner) {}
    absl::StatusOr<std::unique_ptr<RunnerReport>> Run(const RunnerRequest& request,
                                                      absl::Duration timeout,
                                                      const RunnerHooks& hooks) override {
      owner_.requests.push_back(request);
      if (!owner_.status.ok()) return owner_.status;
      auto report = std::make_unique<RunnerReport>();
      report->add_walls("seccomp");
      for (const RunnerRequest::Work& work : request.work()) {
        internal::v1::RunnerWorkloadReport& out = *report->add_workloads();
        out.set_workload(work.workload().name());
        out.mutable_verification()->set_passed(true);
        out.mutable_verification()->set_checked_call_count(5);
        Enter(internal::v1::RunnerProgress::VERIFY, hooks);
        if (!work.measure()) continue;
        Enter(internal::v1::RunnerProgress::MEASURE, hooks);
        AddSamples(request.candidate_artifact(), out.mutable_samples());
      }
      if (owner_.edit) owner_.edit(request, report.get());
      return report;
    }

   private:
    static void Enter(internal::v1::RunnerProgress::Phase phase, const RunnerHooks& hooks) {
      internal::v1::RunnerProgress progress;
      progress.set_phase(phase);
      hooks.on_progress(progress);
    }

    void AddSamples(const std::string& artifact, v1::RunnerSamples* samples) {
      const auto known = owner_.warm_ns.find(artifact);
      const double ns = known == owner_.warm_ns.end() ? 10'000 : known->second;
      for (int i = 0; i < 30; ++i) samples->add_warm_ns(ns);
      for (int i = 0; i < 10; ++i) samples->add_cold_ns(2 * ns);
      samples->set_handshake_ns(150);
      samples->set_stop_reason(v1::CONVERGED);
    }
    FakeRunners& owner_;
  };
};

class PipelineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MakeTripleProblem(true, work_.mutable_problem());
    work_.mutable_evaluation()->set_name("evaluations/e");
    work_.mutable_evaluation()->set_level(v1::VERIFY);
    FillCandidate("kernel.cc", work_.mutable_candidate());
  }

  static void FillCandidate(const std::string& path, v1::Candidate* candidate) {
    candidate->mutable_spec()->set_problem("triple");
    candidate->mutable_spec()->set_language(v1::CPP);
    candidate->set_digest(absl::StrCat("candidate ", path));
    v1::SourceFile& file = *candidate->add_files();
    file.set_path(path);
    file.set_content("extern \"C\" void triple(const float*, float*, int64_t) {}\n");
  }

  Pipeline& pipeline() {
    if (pipeline_ == nullptr) {
      PipelineOptions options;
      options.builder = &builder_;
      options.runners = &runners_;
      options.clock = &clock_;
      options.machine.caveats = {"NOT_ISOLATED"};
      options.device_name = "workers/w/devices/cpu";
      options.harness_version = "test-1";
      options.nonce = [this] { return ++nonce_; };
      options.calibration = calibration_;
      options.recalibrate = recalibrate_;
      pipeline_ = std::make_unique<Pipeline>(std::move(options));
    }
    return *pipeline_;
  }

  absl::Status Judge() {
    outcome_.Clear();
    timeline_.Clear();
    stages_.clear();
    const auto enter = [this](std::string_view stage) {
      if (stages_.empty() || stages_.back() != stage) stages_.emplace_back(stage);
    };
    const PipelineHooks hooks{enter, [this] { return wanted_; }};
    return pipeline().Judge(work_, hooks, &outcome_, &timeline_);
  }

  FakeClock clock_;
  FakeBuilder builder_;
  FakeRunners runners_;
  std::shared_ptr<v1::Calibration> calibration_ = std::make_shared<v1::Calibration>();
  std::function<absl::Status(v1::Calibration*)> recalibrate_;
  uint64_t nonce_ = 0;
  bool wanted_ = true;
  internal::v1::WorkSpec work_;
  v1::Outcome outcome_;
  v1::Timeline timeline_;
  std::vector<std::string> stages_;
  std::unique_ptr<Pipeline> pipeline_;
};

TEST_F(PipelineTest, VerifiesSelectedWithTheBatteryAndTheOthersAlong) {
  ASSERT_OK(Judge());
  EXPECT_EQ(outcome_.verdict(), v1::PASSED) << outcome_.DebugString();
  EXPECT_EQ(outcome_.reason(), "PASSED");
  ASSERT_EQ(runners_.requests.size(), 1u);
  const RunnerRequest& request = runners_.requests[0];
  ASSERT_EQ(request.work_size(), 3);
  EXPECT_EQ(request.work(0).workload().name(), "odd");
  EXPECT_FALSE(request.work(0).battery());
  EXPECT_TRUE(request.work(1).battery());
  EXPECT_FALSE(request.work(1).measure());
  EXPECT_EQ(request.work(1).workload().axes().at("n"), 64);
  EXPECT_EQ(request.problem().files_size(), 0);
  EXPECT_EQ(request.candidate_artifact(), "/artifacts/kernel.cc");
  EXPECT_EQ(request.reference_artifact(), "/artifacts/reference.cc");
  // The selected ones come first in the outcome.
  ASSERT_EQ(outcome_.workload_results_size(), 3);
  EXPECT_EQ(outcome_.workload_results(0).workload(), "main");
  EXPECT_FALSE(outcome_.workload_results(0).has_measurement());
  EXPECT_EQ(outcome_.workload_results(2).workload(), "odd");
  EXPECT_EQ(outcome_.verified_range().elements_max(), 64);
  EXPECT_EQ(outcome_.verified_range().bytes_max(), 256);
  EXPECT_EQ(outcome_.environment().compiler(), "fake++ 1");
  EXPECT_THAT(outcome_.environment().walls(), ElementsAre("seccomp"));
  EXPECT_EQ(outcome_.result_id().size(), 64u);
  EXPECT_EQ(outcome_.env_id().size(), 64u);
  EXPECT_THAT(stages_, ElementsAre("BUILD", "VERIFY"));
  EXPECT_EQ(runners_.refills, 1);
  EXPECT_EQ(runners_.refill_guests, 6);
}

TEST_F(PipelineTest, WorkloadsCanBeSelectedByNameAndAxes) {
  work_.mutable_evaluation()->add_workloads()->set_name("other");
  (*work_.mutable_evaluation()->add_workloads()->mutable_axes())["n"] = 12;
  ASSERT_OK(Judge());
  // For a verdict alone exactly these; before a measurement the problem's others too.
  ASSERT_EQ(outcome_.workload_results_size(), 2);
  EXPECT_EQ(outcome_.workload_results(0).workload(), "other");
  EXPECT_EQ(outcome_.workload_results(1).workload(), "n=12");
  work_.mutable_evaluation()->set_level(v1::QUICK);
  ASSERT_OK(Judge());
  ASSERT_EQ(outcome_.workload_results_size(), 3);
  EXPECT_EQ(outcome_.workload_results(2).workload(), "odd");

  work_.mutable_evaluation()->add_workloads()->set_name("absent");
  ASSERT_OK(Judge());
  EXPECT_EQ(outcome_.verdict(), v1::UNSUPPORTED);
  EXPECT_EQ(outcome_.reason(), "WORKLOAD_INVALID");
}

TEST_F(PipelineTest, TheResultIdFollowsTheContent) {
  ASSERT_OK(Judge());
  const std::string id = outcome_.result_id();
  ASSERT_OK(Judge());
  EXPECT_EQ(outcome_.result_id(), id);  // another nonce, the same result
  work_.mutable_evaluation()->set_level(v1::QUICK);
  ASSERT_OK(Judge());
  EXPECT_NE(outcome_.result_id(), id);
}

TEST_F(PipelineTest, FaultsMapToVerdicts) {
  const struct {
    GuestFault::Kind kind;
    v1::Verdict verdict;
    const char* reason;
  } rows[] = {
      {GuestFault::LOAD_FAILED, v1::RUNTIME_ERROR, "LOAD_FAILED"},
      {GuestFault::SIGNAL, v1::RUNTIME_ERROR, "CRASHED"},
      {GuestFault::EXITED, v1::RUNTIME_ERROR, "EXITED"},
      {GuestFault::FORBIDDEN_SYSCALL, v1::RUNTIME_ERROR, "FORBIDDEN_SYSCALL"},
      {GuestFault::TIMED_OUT, v1::TIMED_OUT, "TIMED_OUT"},
      {GuestFault::OUT_OF_BOUNDS, v1::UNDEFINED_BEHAVIOR, "OUT_OF_BOUNDS"},
      {GuestFault::INPUT_WRITTEN, v1::UNDEFINED_BEHAVIOR, "INPUT_WRITTEN"},
      {GuestFault::CANARY_BROKEN, v1::UNDEFINED_BEHAVIOR, "CANARY_BROKEN"},
      {GuestFault::MEMORY_LIMIT, v1::RESOURCE_EXCEEDED, "MEMORY_LIMIT"},
      {GuestFault::OUTPUT_FLOOD, v1::RESOURCE_EXCEEDED, "OUTPUT_FLOOD"},
      {GuestFault::LATE_WORK, v1::GAMED, "LATE_WORK"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.reason);
    runners_.edit = [&row](const RunnerRequest&, RunnerReport* report) {
      GuestFault& fault = *report->mutable_candidate_fault();
      fault.set_kind(row.kind);
      fault.set_message("what the guest said");
      fault.set_workload("main");
      fault.set_input_case("x3");
      fault.set_tensor("y");
      fault.set_byte_offset(256);
    };
    ASSERT_OK(Judge());
    EXPECT_EQ(outcome_.verdict(), row.verdict);
    EXPECT_EQ(outcome_.reason(), row.reason);
    EXPECT_THAT(outcome_.message(), HasSubstr("main"));
    EXPECT_THAT(outcome_.message(), HasSubstr("what the guest said"));
  }
  // Every kind there is has a row.
  EXPECT_EQ(std::size(rows), static_cast<size_t>(GuestFault::Kind_ARRAYSIZE - 1));
}

TEST_F(PipelineTest, WrongOutputsMapToVerdicts) {
  const struct {
    const char* reason;
    bool nondeterministic;
    const char* stale;
    v1::Verdict verdict;
    const char* outcome_reason;
  } rows[] = {
      {"MISMATCH", false, "", v1::INCORRECT, "MISMATCH"},
      {"NAN_OUTPUT", false, "", v1::INCORRECT, "NAN_OUTPUT"},
      {"OUTPUT_NOT_WRITTEN", false, "", v1::INCORRECT, "OUTPUT_NOT_WRITTEN"},
      {"MISMATCH", true, "", v1::NONDETERMINISTIC, "MISMATCH"},
      {"MISMATCH", false, "timed call 3", v1::GAMED, "STALE_OUTPUT"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.outcome_reason);
    runners_.edit = [&row](const RunnerRequest&, RunnerReport* report) {
      internal::v1::RunnerWorkloadReport& work = *report->mutable_workloads(1);
      work.set_reason(row.reason);
      work.set_nondeterministic(row.nondeterministic);
      work.set_stale_source(row.stale);
      work.mutable_verification()->set_passed(false);
      work.mutable_verification()->set_failed_case("x3");
      v1::Mismatch& mismatch = *work.mutable_verification()->mutable_first_mismatch();
      mismatch.set_tensor("y");
      mismatch.add_index(3);
      mismatch.set_got(2.5);
      mismatch.set_want(3);
    };
    ASSERT_OK(Judge());
    EXPECT_EQ(outcome_.verdict(), row.verdict) << outcome_.DebugString();
    EXPECT_EQ(outcome_.reason(), row.outcome_reason);
    if (row.verdict == v1::GAMED) {
      ASSERT_EQ(outcome_.findings_size(), 1);
      EXPECT_EQ(outcome_.findings(0).detector(), "stale_output");
      continue;
    }
    EXPECT_THAT(outcome_.message(), HasSubstr("y[3] is 2.5, expected 3"));
    EXPECT_THAT(outcome_.message(), HasSubstr("x3"));
    EXPECT_EQ(outcome_.workload_results(0).verification().failed_case(), "x3");
  }
}

TEST_F(PipelineTest, BuildFailuresMapToVerdicts) {
  const struct {
    const char* reason;
    v1::Verdict verdict;
  } rows[] = {{"COMPILE_FAILED", v1::COMPILE_ERROR},
              {"WRONG_PROTOTYPE", v1::COMPILE_ERROR},
              {"ENTRY_NOT_FOUND", v1::COMPILE_ERROR},
              {"OPTION_NOT_ALLOWED", v1::COMPILE_ERROR},
              {"COMPILE_TIMEOUT", v1::RESOURCE_EXCEEDED},
              {"COMPILE_MEMORY", v1::RESOURCE_EXCEEDED},
              {"COMPILE_OUTPUT_FLOOD", v1::RESOURCE_EXCEEDED},
              {"ARTIFACT_TOO_LARGE", v1::RESOURCE_EXCEEDED}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.reason);
    builder_.failures["kernel.cc"] = row.reason;
    ASSERT_OK(Judge());
    EXPECT_EQ(outcome_.verdict(), row.verdict);
    EXPECT_EQ(outcome_.reason(), row.reason);
    EXPECT_THAT(outcome_.message(), HasSubstr("kernel.cc:3:7: expected ';'"));
    ASSERT_EQ(outcome_.build().diagnostics_size(), 1);
    EXPECT_EQ(outcome_.build().diagnostics(0).line(), 3);
    EXPECT_TRUE(runners_.requests.empty());
  }
}

TEST_F(PipelineTest, ASickBuilderIsNotACompileError) {
  builder_.statuses["kernel.cc"] =
      ErrorWithReason(absl::StatusCode::kResourceExhausted, "DISK_FULL", "no space left");
  EXPECT_THAT(Judge(), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(outcome_.verdict(), v1::VERDICT_UNSPECIFIED);
}

TEST_F(PipelineTest, ProblemsAtFaultAreInvalidAndNeverTheCandidates) {
  builder_.failures["reference.cc"] = "COMPILE_FAILED";
  ASSERT_OK(Judge());
  EXPECT_EQ(outcome_.verdict(), v1::INVALID_PROBLEM);
  EXPECT_EQ(outcome_.reason(), "REFERENCE_BUILD_FAILED");
  builder_.failures.clear();
  runners_.edit = [](const RunnerRequest&, RunnerReport* report) {
    report->mutable_reference_fault()->set_message("the reference failed: signal 11");
  };
  ASSERT_OK(Judge());
  EXPECT_EQ(outcome_.verdict(), v1::INVALID_PROBLEM);
  EXPECT_EQ(outcome_.reason(), "REFERENCE_FAILED");
  EXPECT_THAT(outcome_.message(), HasSubstr("signal 11"));
}

TEST_F(PipelineTest, WhatThisWorkerCannotBuildIsUnsupported) {
  work_.mutable_candidate()->mutable_spec()->set_language(v1::CUDA_CPP);
  ASSERT_OK(Judge());
  EXPECT_EQ(outcome_.verdict(), v1::UNSUPPORTED);
  EXPECT_EQ(outcome_.reason(), "LANGUAGE_UNSUPPORTED");
  work_.mutable_candidate()->mutable_spec()->set_language(v1::CPP);
  (*work_.mutable_evaluation()->mutable_configuration())["BLOCK"] = 3;
  ASSERT_OK(Judge());
  EXPECT_EQ(outcome_.reason(), "CONFIGURATION_INVALID");
}

TEST_F(PipelineTest, RunnerFailuresAreTheInfrastructures) {
  runners_.status = absl::UnavailableError("the runner ended without a report");
  EXPECT_THAT(Judge(), StatusIs(absl::StatusCode::kUnavailable));
  runners_.status = absl::OkStatus();
  runners_.edit = [](const RunnerRequest&, RunnerReport* report) {
    report->mutable_error()->set_code("RESOURCE_EXHAUSTED");
    report->mutable_error()->set_reason("SANDBOX_FAILED");
    report->mutable_error()->set_message("fork");
  };
  const absl::Status status = Judge();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(GetReason(status), "SANDBOX_FAILED");
}

TEST_F(PipelineTest, AnEvaluationThatTakesTooLongTimesOut) {
  runners_.status = absl::DeadlineExceededError("no report within 5 min");
  ASSERT_OK(Judge());
  EXPECT_EQ(outcome_.verdict(), v1::TIMED_OUT);
  EXPECT_EQ(outcome_.reason(), "EVALUATION_TIMED_OUT");
}

TEST_F(PipelineTest, StopsWhenNobodyWantsTheOutcome) {
  wanted_ = false;
  EXPECT_THAT(Judge(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_TRUE(builder_.requests.empty());
}

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
  EXPECT_EQ(runners_.requests.size(), 2u);
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

TEST_F(PipelineTest, ConfigurationsReachTheBuildAsMacros) {
  v1::TuningParameter& parameter = *work_.mutable_candidate()->mutable_spec()->add_parameters();
  parameter.set_name("BLOCK");
  parameter.add_values(4);
  parameter.add_values(8);
  ASSERT_OK(Judge());
  EXPECT_THAT(builder_.requests[0].macros,
              ElementsAre(std::pair<std::string, int64_t>("BLOCK", 4)));
  (*work_.mutable_evaluation()->mutable_configuration())["BLOCK"] = 8;
  builder_.requests.clear();
  ASSERT_OK(Judge());
  EXPECT_THAT(builder_.requests[0].macros,
              ElementsAre(std::pair<std::string, int64_t>("BLOCK", 8)));
}

TEST_F(PipelineTest, TheCanaryIsAValidProblem) {
  internal::v1::WorkSpec canary;
  MakeCanary(&canary);
  EXPECT_OK(ValidateProblem(canary.problem()));
  work_ = canary;
  ASSERT_OK(Judge());
  EXPECT_EQ(outcome_.verdict(), v1::PASSED);
}

}  // namespace
}  // namespace assay
