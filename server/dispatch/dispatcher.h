// The dispatcher: the queue made durable. It joins the pure DispatchQueue, the store and the clock,
// and is the only writer of evaluation state after creation.
//
// Thread-safe. No method blocks: whatever needs the store is continued on the store's writer thread
// or on the dispatcher's own thread, and the result arrives through `done` (exactly once, on any
// thread; it must not block).
#ifndef ASSAY_SERVER_DISPATCH_DISPATCHER_H_
#define ASSAY_SERVER_DISPATCH_DISPATCHER_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "assay/internal/v1/dispatch.pb.h"
#include "base/clock.h"
#include "base/limits.h"
#include "store/store.h"

namespace assay {

template <typename T>
using DispatchDone = std::function<void(absl::StatusOr<T>)>;

// A second run gets so many times the attempts of others, for nobody waits who could ask again.
inline constexpr int kSecondRunTries = 3;

struct DispatcherOptions {
  Clock* clock = nullptr;
  Store* store = nullptr;
  absl::Duration lease_duration = absl::Seconds(30);
  // After a start, leases that were running before it are kept this long for their workers to
  // announce them.
  absl::Duration restart_grace = absl::Seconds(30);
  int attempts_max = 3;
  // Infrastructure failures in a row after which a worker is quarantined.
  int quarantine_after = 5;
  // While the queue holds more, what would rank first gets no second run.
  size_t confirm_while_queued_max = limits::kQueuedEvaluationsMax / 2;
  // The digest by which an identical evaluation may be answered from the store, given what the
  // worker reported. Set by the wiring (server/services/identity).
  std::function<std::string(const v1::Evaluation&, const v1::Worker&, const v1::Device&)> identity =
      nullptr;
};

// Hears of every change of an evaluation, after it is durable (or, for `stage` and
// `waiting_reason`, as it happens). Called without locks; must not block.
using EvaluationObserver = std::function<void(const v1::Evaluation&)>;

struct DispatchCounters {
  int64_t queued = 0;
  int64_t leased = 0;
  int64_t unplaceable = 0;  // queued, and no registered worker can run it
  double oldest_queued_seconds = 0;
  int64_t leases_granted_total = 0;
  int64_t leases_expired_total = 0;
  int64_t leases_abandoned_total = 0;
  int64_t completions_total = 0;
  int64_t completions_repeated_total = 0;
  int64_t fenced_total = 0;  // calls refused because their fence was stale
  int64_t workers_active = 0;
};

class Dispatcher {
 public:
  // Loads what was not final. Blocks; call before serving.
  static absl::StatusOr<std::unique_ptr<Dispatcher>> Create(const DispatcherOptions& options);
  virtual ~Dispatcher() =
      default;  // stops the thread; open long polls are answered with UNAVAILABLE

  virtual void SetObserver(EvaluationObserver observer) = 0;  // before serving

  // Evaluations that are durable and QUEUED.
  virtual void Enqueue(const std::vector<v1::Evaluation>& evaluations) = 0;
  virtual void Cancel(const std::string& evaluation, DispatchDone<v1::Evaluation> done) = 0;

  // RESOURCE_EXHAUSTED with reason QUEUE_FULL when `count` more would pass
  // limits::kQueuedEvaluationsMax.
  virtual absl::Status CheckCapacity(size_t count) = 0;

  // Adds what is not durable: `stage`, `waiting_reason`.
  virtual void Decorate(v1::Evaluation* evaluation) = 0;

  // --- The worker's side; messages as in assay.internal.v1.
  virtual void Register(const internal::v1::RegisterWorkerRequest& request,
                        DispatchDone<internal::v1::RegisterWorkerResponse> done) = 0;
  virtual void Acquire(const internal::v1::AcquireLeaseRequest& request,
                       DispatchDone<internal::v1::AcquireLeaseResponse> done) = 0;
  // The caller of an open Acquire went away.
  virtual void ForgetPoll(const std::string& session, const std::string& poll_id) = 0;
  virtual void Renew(const internal::v1::RenewLeaseRequest& request,
                     DispatchDone<internal::v1::RenewLeaseResponse> done) = 0;
  virtual void Complete(const internal::v1::CompleteLeaseRequest& request,
                        DispatchDone<internal::v1::CompleteLeaseResponse> done) = 0;
  virtual void Abandon(const internal::v1::AbandonLeaseRequest& request,
                       DispatchDone<internal::v1::AbandonLeaseResponse> done) = 0;

  // --- The fleet.
  virtual std::vector<v1::Worker> Workers() = 0;
  // NOT_FOUND with reason WORKER_NOT_FOUND.
  virtual absl::StatusOr<v1::Worker> SetDraining(std::string_view worker, bool draining) = 0;

  virtual DispatchCounters Counters() = 0;

  // Expires leases and long polls that are due by the clock. The dispatcher's thread calls it;
  // tests with a fake clock call it themselves.
  virtual void Tick() = 0;
};

}  // namespace assay

#endif  // ASSAY_SERVER_DISPATCH_DISPATCHER_H_
