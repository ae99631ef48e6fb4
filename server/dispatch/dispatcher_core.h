// The dispatcher without threads: DispatchQueue, store and clock joined; blocking reads go to an
// injected TaskRunner and time passes only when Tick is called. Dispatcher::Create adds the
// threads; tests/simulation drives this class with a store, a runner and a clock of its own.
//
// Thread-safe. One mutex guards the queue and the tables beside it; every method changes them under
// it, collects what follows (writes, answers, notices) and does that after it let go. At most one
// write of an evaluation's life is in flight, so the order in which two threads reach the store
// does not matter. Callbacks of the store hold a reference to the core: it may be given up at any
// time.
#ifndef ASSAY_SERVER_DISPATCH_DISPATCHER_CORE_H_
#define ASSAY_SERVER_DISPATCH_DISPATCHER_CORE_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/dispatch/dispatcher.h"
#include "server/dispatch/queue.h"
#include "server/dispatch/task_runner.h"

namespace assay {

class DispatcherCore : public Dispatcher, public std::enable_shared_from_this<DispatcherCore> {
 public:
  // `queue_options` beyond what DispatcherOptions sets; `instance` must differ between starts.
  static absl::StatusOr<std::shared_ptr<DispatcherCore>> Create(const DispatcherOptions& options,
                                                                QueueOptions queue_options,
                                                                std::shared_ptr<TaskRunner> runner);

  // Answers the open polls with UNAVAILABLE and refuses further calls. Results of writes that are
  // in flight still reach their callers. Idempotent.
  void Stop();

  void SetObserver(EvaluationObserver observer) override;
  void Enqueue(const std::vector<v1::Evaluation>& evaluations) override;
  void Cancel(const std::string& evaluation, DispatchDone<v1::Evaluation> done) override;
  absl::Status CheckCapacity(size_t count) override;
  void Decorate(v1::Evaluation* evaluation) override;
  void Register(const internal::v1::RegisterWorkerRequest& request,
                DispatchDone<internal::v1::RegisterWorkerResponse> done) override;
  void Acquire(const internal::v1::AcquireLeaseRequest& request,
               DispatchDone<internal::v1::AcquireLeaseResponse> done) override;
  void ForgetPoll(const std::string& session, const std::string& poll_id) override;
  void Renew(const internal::v1::RenewLeaseRequest& request,
             DispatchDone<internal::v1::RenewLeaseResponse> done) override;
  void Complete(const internal::v1::CompleteLeaseRequest& request,
                DispatchDone<internal::v1::CompleteLeaseResponse> done) override;
  void Abandon(const internal::v1::AbandonLeaseRequest& request,
               DispatchDone<internal::v1::AbandonLeaseResponse> done) override;
  std::vector<v1::Worker> Workers() override;
  absl::StatusOr<v1::Worker> SetDraining(std::string_view worker, bool draining) override;
  DispatchCounters Counters() override;
  void Tick() override;

 private:
  // What is done after the mutex was let go.
  using Outbox = std::vector<std::function<void()>>;
  using PollKey = std::pair<std::string, std::string>;  // session, poll_id
  using PollDone = DispatchDone<internal::v1::AcquireLeaseResponse>;
  using CompleteDone = DispatchDone<internal::v1::CompleteLeaseResponse>;
  using AbandonDone = DispatchDone<internal::v1::AbandonLeaseResponse>;

  // What a worker is to be given, or why that could not be read.
  using Work = absl::StatusOr<internal::v1::WorkSpec>;

  struct Running {
    v1::Evaluation evaluation;  // as the store returned it, with `stage`
    int64_t fence = 0;
    int problem_version = 0;
    std::shared_ptr<Work> work;  // until the first delivery
  };

  struct Ends {  // of one attempt, that wait for the store
    int64_t fence = 0;
    std::vector<AbandonDone> dones;
  };

  struct WorkerRow {
    std::shared_ptr<const v1::Worker> description;  // as registered, now or before the start
    bool registered = false;                        // since the start
    absl::Time register_time;
    int64_t completed_before = 0;  // the start
    int64_t failures_before = 0;
    absl::Duration written = -absl::InfiniteDuration();
    bool dirty = false;
    bool writing = false;
  };

  DispatcherCore(const DispatcherOptions& options, const QueueOptions& queue_options,
                 std::shared_ptr<TaskRunner> runner);
  absl::Status Load();

  // Turns the queue's actions into closures of `out`.
  void Collect(Outbox* out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CollectAnswer(const QueueAction& action, Outbox* out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void Flush(Outbox out);
  absl::Duration Mono() { return options_.clock->Monotonic(); }

  // Continuations of writes.
  void GrantDone(const QueueLease& lease, std::shared_ptr<Work> work,
                 absl::StatusOr<v1::Evaluation> result);
  void EndDone(const QueueLease& lease, absl::StatusOr<v1::Evaluation> result);
  void CompleteWritten(const QueueLease& lease, absl::StatusOr<CompletionRecord> result);
  void CancelDone(const std::string& evaluation, absl::StatusOr<v1::Evaluation> result,
                  const DispatchDone<v1::Evaluation>& done);
  void WorkerWritten(const std::string& worker, bool ok);

  // Tasks.
  void PrepareGrant(const QueueAction& action);
  void Deliver(const QueueAction& action, std::shared_ptr<Work> work);
  void Redeliver(const QueueAction& action);
  Running* FindRunning(const QueueLease& lease) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // `problem_version` 0: the newest, or that of the evaluation which is replayed.
  Work ReadWork(const v1::Evaluation& evaluation, int problem_version);
  void Resync(const std::string& evaluation);
  void SendNotices(const std::vector<std::string>& evaluations);
  // Queues a second run that is durable and QUEUED. `worker` ran the first.
  void EnqueueConfirmation(const std::optional<v1::Evaluation>& confirmation,
                           const std::string& worker, Outbox* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::vector<PollDone> TakeWaiters(const PollKey& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<AbandonDone> TakeEnds(const std::string& evaluation)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WriteCompletion(const internal::v1::CompleteLeaseRequest& request, const QueueLease& lease,
                       const v1::Evaluation& evaluation, const v1::Worker& worker,
                       bool may_confirm);
  void AskStoreForCompletion(const internal::v1::CompleteLeaseRequest& request, CompleteDone done);
  v1::Worker MakeWorker(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WriteWorker(const std::string& name, Outbox* out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Observe(const v1::Evaluation& evaluation);

  const DispatcherOptions options_;
  const QueueOptions queue_options_;
  const std::shared_ptr<TaskRunner> runner_;
  EvaluationObserver observer_;  // set before serving

  absl::Mutex mutex_;
  DispatchQueue queue_ ABSL_GUARDED_BY(mutex_);
  std::map<PollKey, std::deque<PollDone>> waiters_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Running> running_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::vector<CompleteDone>> completing_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Ends> ending_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, WorkerRow> rows_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> notices_ ABSL_GUARDED_BY(mutex_);
  bool notices_running_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Duration rows_checked_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
  int64_t completions_repeated_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t fenced_by_store_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace assay

#endif  // ASSAY_SERVER_DISPATCH_DISPATCHER_CORE_H_
