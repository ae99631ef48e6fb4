// The dispatcher with its threads: one ticks, two read the store for the core.
#include "server/dispatch/dispatcher.h"

#include <thread>
#include <utility>

#include "absl/synchronization/notification.h"
#include "base/random.h"
#include "server/dispatch/dispatcher_core.h"

namespace assay {
namespace {

constexpr int kTaskThreads = 2;
// How late a lease may expire or a long poll be answered.
constexpr absl::Duration kTickInterval = absl::Milliseconds(100);

class ThreadedDispatcher : public Dispatcher {
 public:
  ThreadedDispatcher(std::shared_ptr<DispatcherCore> core, std::shared_ptr<ThreadTaskRunner> runner)
      : core_(std::move(core)), runner_(std::move(runner)), ticker_([this] { TickLoop(); }) {}

  ~ThreadedDispatcher() override {
    core_->Stop();
    stop_.Notify();
    ticker_.join();
    runner_->Shutdown();
  }

  void SetObserver(EvaluationObserver observer) override {
    core_->SetObserver(std::move(observer));
  }
  void Enqueue(const std::vector<v1::Evaluation>& evaluations) override {
    core_->Enqueue(evaluations);
  }
  void Cancel(const std::string& evaluation, DispatchDone<v1::Evaluation> done) override {
    core_->Cancel(evaluation, std::move(done));
  }
  absl::Status CheckCapacity(size_t count) override { return core_->CheckCapacity(count); }
  void Decorate(v1::Evaluation* evaluation) override { core_->Decorate(evaluation); }
  void Register(const internal::v1::RegisterWorkerRequest& request,
                DispatchDone<internal::v1::RegisterWorkerResponse> done) override {
    core_->Register(request, std::move(done));
  }
  void Acquire(const internal::v1::AcquireLeaseRequest& request,
               DispatchDone<internal::v1::AcquireLeaseResponse> done) override {
    core_->Acquire(request, std::move(done));
  }
  void ForgetPoll(const std::string& session, const std::string& poll_id) override {
    core_->ForgetPoll(session, poll_id);
  }
  void Renew(const internal::v1::RenewLeaseRequest& request,
             DispatchDone<internal::v1::RenewLeaseResponse> done) override {
    core_->Renew(request, std::move(done));
  }
  void Complete(const internal::v1::CompleteLeaseRequest& request,
                DispatchDone<internal::v1::CompleteLeaseResponse> done) override {
    core_->Complete(request, std::move(done));
  }
  void Abandon(const internal::v1::AbandonLeaseRequest& request,
               DispatchDone<internal::v1::AbandonLeaseResponse> done) override {
    core_->Abandon(request, std::move(done));
  }
  std::vector<v1::Worker> Workers() override { return core_->Workers(); }
  absl::StatusOr<v1::Worker> SetDraining(std::string_view worker, bool draining) override {
    return core_->SetDraining(worker, draining);
  }
  DispatchCounters Counters() override { return core_->Counters(); }
  void Tick() override { core_->Tick(); }

 private:
  void TickLoop() {
    while (!stop_.WaitForNotificationWithTimeout(kTickInterval)) core_->Tick();
  }

  const std::shared_ptr<DispatcherCore> core_;
  const std::shared_ptr<ThreadTaskRunner> runner_;
  absl::Notification stop_;
  std::thread ticker_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Dispatcher>> Dispatcher::Create(const DispatcherOptions& options) {
  auto runner = std::make_shared<ThreadTaskRunner>(kTaskThreads);
  QueueOptions queue_options;
  queue_options.instance = SecureRandomHex(8);
  absl::StatusOr<std::shared_ptr<DispatcherCore>> core =
      DispatcherCore::Create(options, queue_options, runner);
  if (!core.ok()) return core.status();
  return std::unique_ptr<Dispatcher>(
      std::make_unique<ThreadedDispatcher>(*std::move(core), std::move(runner)));
}

}  // namespace assay
