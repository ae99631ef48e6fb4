// Runs requests through the runner's one entry, with fake guests. Only for tests.
#ifndef ASSAY_WORKER_TESTING_RUNNER_FIXTURE_H_
#define ASSAY_WORKER_TESTING_RUNNER_FIXTURE_H_

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "assay/internal/v1/runner.pb.h"
#include "base/file.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "worker/runner/runner.h"
#include "worker/testing/fake_guest.h"

namespace assay {

using internal::v1::GuestFault;
using internal::v1::RunnerReport;
using internal::v1::RunnerRequest;
using internal::v1::RunnerWorkloadReport;
using Tensors = std::vector<std::span<std::byte>>;

class RunnerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(TemporaryDirectory folder, TemporaryDirectory::Create("runner-test"));
    folder_ = std::make_unique<TemporaryDirectory>(std::move(folder));
    const std::string artifact = folder_->path() + "/artifact";
    ASSERT_OK(WriteFileAtomically(artifact, "not loaded by fakes"));
    request_.set_candidate_artifact(artifact);
    request_.set_reference_artifact(artifact);
    request_.set_nonce(0x1234567890abcdef);
    request_.set_call_timeout_ms(1000);
    request_.set_runner_core(-1);
    request_.set_level(v1::QUICK);
    MakeTripleProblem(true, request_.mutable_problem());
  }

  void AddWork(const std::string& name, int64_t n, bool battery, bool measure) {
    RunnerRequest::Work& work = *request_.add_work();
    work.mutable_workload()->set_name(name);
    (*work.mutable_workload()->mutable_axes())["n"] = n;
    work.set_battery(battery);
    work.set_measure(measure);
  }

  RunnerReport Run(FakeGuestPlan candidate, FakeGuestPlan reference = TripleReference()) {
    FakeGuestSource guests(std::move(reference), std::move(candidate), &clock_);
    return Run(&guests);
  }

  RunnerReport Run(FakeGuestSource* guests) {
    RunnerReport report;
    progress_.clear();
    const auto note = [this](const internal::v1::RunnerProgress& progress) {
      progress_.push_back({progress.phase(), clock_.Monotonic()});
    };
    ExecuteRunnerRequest(request_, guests, &clock_, note, nullptr, &report);
    return report;
  }

  struct Progress {
    int phase;
    absl::Duration at;
  };

  FakeClock clock_;
  std::unique_ptr<TemporaryDirectory> folder_;
  std::vector<Progress> progress_;
  RunnerRequest request_;
};

inline FakeGuestPlan Computing(std::function<void(int call, const Tensors& tensors)> compute) {
  FakeGuestPlan plan;
  plan.compute = [compute](int call, const Tensors& tensors, const std::vector<int64_t>& axes) {
    compute(call, tensors);
  };
  return plan;
}

inline GuestEnd End(int kind, const std::string& message) {
  GuestEnd end;
  end.kind = kind;
  end.message = message;
  return end;
}

inline float* Floats(std::span<std::byte> bytes) { return reinterpret_cast<float*>(bytes.data()); }

}  // namespace assay

#endif  // ASSAY_WORKER_TESTING_RUNNER_FIXTURE_H_
