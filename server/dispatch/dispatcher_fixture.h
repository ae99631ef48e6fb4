// The dispatcher without threads on a store whose writes, and a runner whose tasks, the test runs.
// Only for tests.
#ifndef ASSAY_SERVER_DISPATCH_DISPATCHER_FIXTURE_H_
#define ASSAY_SERVER_DISPATCH_DISPATCHER_FIXTURE_H_

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "assay/internal/v1/dispatch.pb.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/dispatch/dispatcher_core.h"
#include "server/dispatch/task_runner.h"
#include "store/testing/builders.h"
#include "store/testing/fake_store.h"

namespace assay {

namespace iv1 = internal::v1;

// Tasks wait until the test runs them.
class ManualRunner : public TaskRunner {
 public:
  void Run(std::function<void()> task) override { tasks_.push_back(std::move(task)); }
  bool RunAll() {
    if (tasks_.empty()) return false;
    for (auto& task : std::exchange(tasks_, {})) task();
    return true;
  }

 private:
  std::vector<std::function<void()>> tasks_;
};

template <typename T>
struct Answer {
  std::vector<absl::StatusOr<T>> results;
  DispatchDone<T> Done() {
    return [this](absl::StatusOr<T> result) { results.push_back(std::move(result)); };
  }
  bool open() const { return results.empty(); }
  const absl::StatusOr<T>& operator*() const { return results.at(0); }
  const absl::StatusOr<T>* operator->() const { return &results.at(0); }
};

inline iv1::RegisterWorkerRequest Registration(const std::string& worker) {
  iv1::RegisterWorkerRequest request;
  request.set_worker(worker);
  request.set_lease_count_max(4);
  v1::Device* device = request.mutable_description()->add_devices();
  device->set_kind("cpu");
  device->set_device_class("cpu-test");
  return request;
}

inline iv1::AcquireLeaseRequest PollRequest(const std::string& session, const std::string& id,
                                            int wait_seconds = 20) {
  iv1::AcquireLeaseRequest request;
  request.set_session(session);
  request.set_poll_id(id);
  request.mutable_wait()->set_seconds(wait_seconds);
  return request;
}

// A store that lost its candidates, or cannot read them for a while.
class Holey : public FakeStore {
 public:
  Holey() : FakeStore(Mode::kManual) {}
  absl::StatusOr<v1::Candidate> GetCandidate(std::string_view name) override {
    return failure.ok() ? FakeStore::GetCandidate(name) : absl::StatusOr<v1::Candidate>(failure);
  }
  absl::Status failure;
};

// The core on a store whose writes, and a runner whose tasks, the test runs.
class DispatcherTest : public ::testing::Test {
 protected:
  void SetUp() override {
    store_.CreateProblem(testing::MakeProblem("gelu"), [](absl::StatusOr<v1::Problem>) {});
    store_.RecordProblemAudit(testing::MakeAudit(testing::MakeProblem("gelu"), true),
                              absl::UnixEpoch(), [](absl::StatusOr<v1::Problem>) {});
    store_.RunPending();
    Start();
  }
  void Start() {
    ++starts_;
    runner_ = std::make_shared<ManualRunner>();
    DispatcherOptions options;
    options.clock = &clock_;
    options.store = &store_;
    options.confirm_while_queued_max = confirm_while_queued_max_;
    options.identity = [](const v1::Evaluation& evaluation, const v1::Worker& worker,
                          const v1::Device& device) {
      return absl::StrCat(evaluation.name(), "|", worker.name(), "|", device.name());
    };
    QueueOptions queue_options;
    queue_options.instance = absl::StrCat("start", starts_);
    auto core = DispatcherCore::Create(options, queue_options, runner_);
    ASSERT_OK(core);
    core_ = *core;
    core_->SetObserver([this](const v1::Evaluation& e) {
      observed_.push_back(absl::StrCat(e.name(), " ", v1::State_Name(e.state()),
                                       e.stage().empty() ? "" : " " + e.stage(),
                                       e.waiting_reason().empty() ? "" : " waits"));
    });
  }
  // Runs writes and tasks until nothing is left.
  void Settle() {
    do {
      store_.RunPending();
    } while (runner_->RunAll() || store_.pending_count() > 0);
  }
  v1::Evaluation Create(const std::string& id, const std::string& device_class = "cpu") {
    NewEvaluation evaluation = testing::MakeEvaluation(id);
    evaluation.evaluation.set_device_class(device_class);
    v1::Evaluation created;
    store_.CreateEvaluations({evaluation},
                             [&](absl::StatusOr<std::vector<CreatedEvaluation>> result) {
                               ASSERT_OK(result);
                               created = result->front().evaluation;
                             });
    store_.RunPending();
    core_->Enqueue({created});
    return created;
  }
  std::string Register(const std::string& worker, const std::vector<iv1::LeaseRef>& held = {}) {
    iv1::RegisterWorkerRequest request = Registration(worker);
    for (const iv1::LeaseRef& ref : held) *request.add_held_leases() = ref;
    core_->Register(request, registered_.emplace_back().Done());
    EXPECT_OK(*registered_.back());
    return (*registered_.back())->session();
  }
  iv1::Lease Lease(const std::string& session) {
    Answer<iv1::AcquireLeaseResponse> answer;
    core_->Acquire(PollRequest(session, absl::StrCat("poll", ++polls_)), answer.Done());
    Settle();
    EXPECT_FALSE(answer.open());
    if (answer.open() || !answer->ok()) return {};
    EXPECT_TRUE((*answer)->has_lease());
    return (*answer)->lease();
  }
  iv1::CompleteLeaseRequest Completion(const std::string& session, const iv1::LeaseRef& ref) {
    iv1::CompleteLeaseRequest request;
    request.set_session(session);
    *request.mutable_ref() = ref;
    request.mutable_outcome()->set_verdict(v1::PASSED);
    return request;
  }
  v1::Evaluation Stored(const std::string& name) { return *store_.GetEvaluation(name, true); }

  size_t confirm_while_queued_max_ = DispatcherOptions().confirm_while_queued_max;
  FakeClock clock_;
  FakeStore store_{FakeStore::Mode::kManual};
  std::shared_ptr<ManualRunner> runner_;
  std::shared_ptr<DispatcherCore> core_;
  std::deque<Answer<iv1::RegisterWorkerResponse>> registered_;
  std::vector<std::string> observed_;
  int starts_ = 0;
  int polls_ = 0;
};

}  // namespace assay

#endif  // ASSAY_SERVER_DISPATCH_DISPATCHER_FIXTURE_H_
