// The pipeline between a fake builder and fake runners. Only for tests.
#ifndef ASSAY_WORKER_TESTING_PIPELINE_FIXTURE_H_
#define ASSAY_WORKER_TESTING_PIPELINE_FIXTURE_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "assay/internal/v1/dispatch.pb.h"
#include "assay/internal/v1/runner.pb.h"
#include "assay/v1/fleet.pb.h"
#include "base/test_matchers.h"
#include "gtest/gtest.h"
#include "kernels/problem.h"
#include "worker/agent/pipeline.h"
#include "worker/testing/fake_guest.h"

namespace assay {

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
    const auto artifact = artifacts.find(source);
    result.artifact_path =
        artifact == artifacts.end() ? absl::StrCat("/artifacts/", source) : artifact->second;
    result.artifact_digest = absl::StrCat("digest of ", source);
    return result;
  }

  std::map<std::string, std::string> failures;
  std::map<std::string, absl::Status> statuses;
  std::map<std::string, std::string> artifacts;  // paths; by default none that exists
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

  std::vector<internal::v1::RunnerRequest> requests;
  std::function<void(const internal::v1::RunnerRequest&, internal::v1::RunnerReport*)> edit;
  std::map<std::string, double> warm_ns;
  absl::Status status;
  int refills = 0;
  int refill_guests = 0;

 private:
  class Client : public RunnerClient {
   public:
    explicit Client(FakeRunners* owner) : owner_(*owner) {}
    absl::StatusOr<std::unique_ptr<internal::v1::RunnerReport>> Run(
        const internal::v1::RunnerRequest& request, absl::Duration timeout,
        const RunnerHooks& hooks) override {
      owner_.requests.push_back(request);
      if (!owner_.status.ok()) return owner_.status;
      auto report = std::make_unique<internal::v1::RunnerReport>();
      report->add_walls("seccomp");
      for (const internal::v1::RunnerRequest::Work& work : request.work()) {
        internal::v1::RunnerWorkloadReport& out = *report->add_workloads();
        out.set_workload(work.workload().name());
        out.mutable_verification()->set_passed(true);
        out.mutable_verification()->set_checked_call_count(5);
        Enter(internal::v1::RunnerProgress::VERIFY, hooks);
        if (!work.measure()) continue;
        Enter(internal::v1::RunnerProgress::MEASURE, hooks);
        AddSamples(request.candidate_artifact(), out.mutable_samples());
        out.set_empty_outside_ns(3'000);
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
      options.device = device_;
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
  std::optional<DeviceBackend> device_;
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

}  // namespace assay

#endif  // ASSAY_WORKER_TESTING_PIPELINE_FIXTURE_H_
