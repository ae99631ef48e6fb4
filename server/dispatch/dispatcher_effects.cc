// What follows from the dispatcher's calls: writes and their results, answers, worker rows.
// Blocking reads are in dispatcher_tasks.cc.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/status.h"
#include "server/dispatch/dispatcher_core.h"
#include "server/dispatch/store_errors.h"
#include "server/dispatch/times.h"

namespace assay {
namespace {

// Counts and last-seen times of a worker reach the store at most this often.
constexpr absl::Duration kWorkerRowInterval = absl::Seconds(10);
constexpr absl::Duration kWorkerRowCheckInterval = absl::Seconds(1);
constexpr int kWorkerRowsPerCheck = 1000;

// What a worker may see of a failed completion: fenced, or to be tried again, or its own fault.
absl::Status CompletionError(const absl::Status& status, const QueueLease& lease) {
  switch (status.code()) {
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kInvalidArgument:
      return status;
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kFailedPrecondition:
      return ErrorWithReason(absl::StatusCode::kAborted, "LEASE_FENCED",
                             absl::StrCat("the lease on ", lease.evaluation, " with fence ",
                                          lease.fence, " is gone; stop the work"));
    default:
      return absl::Status(absl::StatusCode::kUnavailable,
                          absl::StrCat("the outcome of ", lease.evaluation,
                                       " was not recorded, try again: ", status.message()));
  }
}

// The device that the evaluation ran on: the one its results name, else the first that fits.
const v1::Device* FindDevice(const v1::Worker& worker, const v1::Evaluation& evaluation,
                             const v1::Outcome& outcome) {
  for (const v1::WorkloadResult& result : outcome.workload_results()) {
    for (const v1::Device& device : worker.devices()) {
      if (device.name() == result.device()) return &device;
    }
  }
  for (const v1::Device& device : worker.devices()) {
    if (device.device_class() == evaluation.device_class() ||
        device.kind() == evaluation.device_class()) {
      return &device;
    }
  }
  return nullptr;
}

v1::Worker::State ToProtoState(WorkerState state) {
  switch (state) {
    case WorkerState::kActive:
      return v1::Worker::ACTIVE;
    case WorkerState::kDraining:
      return v1::Worker::DRAINING;
    case WorkerState::kLost:
      return v1::Worker::LOST;
    case WorkerState::kQuarantined:
      return v1::Worker::QUARANTINED;
  }
  return v1::Worker::STATE_UNSPECIFIED;
}

}  // namespace

void DispatcherCore::Flush(Outbox out) {
  for (std::function<void()>& effect : out) effect();
}

void DispatcherCore::Observe(const v1::Evaluation& evaluation) {
  if (observer_ != nullptr) observer_(evaluation);
}

// --- Actions of the queue.

void DispatcherCore::Collect(Outbox* out) {
  auto self = shared_from_this();
  for (QueueAction& action : queue_.TakeActions()) {
    if (stopped_) continue;
    const QueueLease lease{action.evaluation, action.fence};
    switch (action.kind) {
      case QueueAction::Kind::kRecordLease:
        out->push_back(
            [self, action] { self->runner_->Run([self, action] { self->PrepareGrant(action); }); });
        break;
      case QueueAction::Kind::kRecordEnd: {
        AttemptEnd end;
        end.evaluation = action.evaluation;
        end.fence = action.fence;
        end.error.set_code(action.error.code);
        end.error.set_reason(action.error.reason);
        end.error.set_message(action.error.message);
        end.final = action.final;
        end.time = options_.clock->Now();
        out->push_back([self, end = std::move(end), lease] {
          self->options_.store->RecordAttemptEnd(
              end, [self, lease](absl::StatusOr<v1::Evaluation> result) {
                self->EndDone(lease, std::move(result));
              });
        });
        break;
      }
      case QueueAction::Kind::kResync:
        out->push_back([self, evaluation = action.evaluation] {
          self->runner_->Run([self, evaluation] { self->Resync(evaluation); });
        });
        break;
      case QueueAction::Kind::kAnswerLease:
      case QueueAction::Kind::kAnswerEmpty:
      case QueueAction::Kind::kAnswerSuperseded:
        CollectAnswer(action, out);
        break;
      case QueueAction::Kind::kWaiting:
        if (observer_ != nullptr) notices_.push_back(action.evaluation);
        break;
      case QueueAction::Kind::kWorkerChanged:
        if (rows_.count(action.worker) != 0) WriteWorker(action.worker, out);
        break;
      case QueueAction::Kind::kWorkerForgotten:
        rows_.erase(action.worker);
        break;
    }
  }
  if (!stopped_ && !notices_.empty() && !notices_running_) {
    notices_running_ = true;
    out->push_back([self, notices = std::exchange(notices_, {})] {
      self->runner_->Run([self, notices] { self->SendNotices(notices); });
    });
  }
}

void DispatcherCore::CollectAnswer(const QueueAction& action, Outbox* out) {
  if (action.kind == QueueAction::Kind::kAnswerLease) {
    Running* running = FindRunning({action.evaluation, action.fence});
    std::shared_ptr<Work> work = running == nullptr ? nullptr : std::move(running->work);
    out->push_back([self = shared_from_this(), action, work] {
      if (work != nullptr) {
        self->Deliver(action, work);
      } else {
        self->runner_->Run([self, action] { self->Redeliver(action); });
      }
    });
    return;
  }
  for (PollDone& done : TakeWaiters({action.session, action.poll_id})) {
    if (action.kind == QueueAction::Kind::kAnswerSuperseded) {
      out->push_back([done = std::move(done)] {
        done(ErrorWithReason(absl::StatusCode::kAborted, "SESSION_SUPERSEDED",
                             "a newer registration of this worker replaced the session"));
      });
    } else {
      out->push_back([done = std::move(done), drain = action.drain] {
        internal::v1::AcquireLeaseResponse response;
        response.set_drain(drain);
        done(std::move(response));
      });
    }
  }
}

std::vector<DispatcherCore::PollDone> DispatcherCore::TakeWaiters(const PollKey& key) {
  auto it = waiters_.find(key);
  if (it == waiters_.end()) return {};
  std::vector<PollDone> waiters(std::make_move_iterator(it->second.begin()),
                                std::make_move_iterator(it->second.end()));
  waiters_.erase(it);
  return waiters;
}

std::vector<DispatcherCore::AbandonDone> DispatcherCore::TakeEnds(const std::string& evaluation) {
  auto it = ending_.find(evaluation);
  if (it == ending_.end()) return {};
  std::vector<AbandonDone> dones = std::move(it->second.dones);
  ending_.erase(it);
  return dones;
}

// --- Results of writes.

void DispatcherCore::GrantDone(const QueueLease& lease, std::shared_ptr<Work> work,
                               absl::StatusOr<v1::Evaluation> result) {
  if (!result.ok()) LogFailedWrite("lease", lease.evaluation, lease.fence, result.status());
  Outbox out;
  {
    absl::MutexLock lock(&mutex_);
    if (result.ok()) {
      Running& running = running_[lease.evaluation];
      running.evaluation = *result;
      running.fence = lease.fence;
      if (work->ok()) {
        *(*work)->mutable_evaluation() = *result;
        running.problem_version = (*work)->problem().version();
      }
      running.work = std::move(work);
      queue_.CommitGrant(lease, Mono());
    } else {
      queue_.FailGrant(lease, Classify(result.status()), Mono());
    }
    Collect(&out);
    // It may have been cancelled meanwhile.
    if (!queue_.Contains(lease.evaluation)) running_.erase(lease.evaluation);
  }
  if (result.ok()) Observe(*result);
  Flush(std::move(out));
}

void DispatcherCore::EndDone(const QueueLease& lease, absl::StatusOr<v1::Evaluation> result) {
  if (!result.ok()) LogFailedWrite("attempt_end", lease.evaluation, lease.fence, result.status());
  Outbox out;
  std::vector<AbandonDone> dones;
  {
    absl::MutexLock lock(&mutex_);
    dones = TakeEnds(lease.evaluation);
    if (result.ok()) {
      running_.erase(lease.evaluation);
      queue_.CommitEnd(lease, Mono());
    } else {
      const WriteFailure failure = Classify(result.status());
      if (failure == WriteFailure::kConflict) running_.erase(lease.evaluation);
      queue_.FailEnd(lease, failure, Mono());
    }
    Collect(&out);
  }
  if (result.ok()) Observe(*result);
  Flush(std::move(out));
  for (AbandonDone& done : dones) {
    if (result.ok()) {
      done(internal::v1::AbandonLeaseResponse());
    } else {
      done(CompletionError(result.status(), lease));
    }
  }
}

void DispatcherCore::CancelDone(const std::string& evaluation,
                                absl::StatusOr<v1::Evaluation> result,
                                const DispatchDone<v1::Evaluation>& done) {
  Outbox out;
  std::vector<AbandonDone> ends;
  {
    absl::MutexLock lock(&mutex_);
    if (result.ok()) {
      queue_.Cancelled(evaluation, Mono());
      running_.erase(evaluation);
      // The queue waits no more for the end of an attempt that it had to repeat.
      if (!queue_.Contains(evaluation)) ends = TakeEnds(evaluation);
    } else if (Classify(result.status()) == WriteFailure::kConflict) {
      queue_.Finished(evaluation, Mono());
    }
    Collect(&out);
  }
  if (result.ok()) Observe(*result);
  Flush(std::move(out));
  for (AbandonDone& end : ends) end(internal::v1::AbandonLeaseResponse());
  done(std::move(result));
}

void DispatcherCore::WriteCompletion(const internal::v1::CompleteLeaseRequest& request,
                                     const QueueLease& lease, const v1::Evaluation& evaluation,
                                     const v1::Worker& worker, bool may_confirm) {
  Completion completion;
  completion.may_confirm = may_confirm;
  completion.evaluation = lease.evaluation;
  completion.fence = lease.fence;
  completion.outcome = request.outcome();
  completion.timeline = request.timeline();
  completion.time = options_.clock->Now();
  const v1::Device* device = FindDevice(worker, evaluation, completion.outcome);
  if (device != nullptr) {
    completion.device_class = device->device_class();
    // What repeats old inputs answers nobody who asks anew.
    if (options_.identity != nullptr && evaluation.replay_of().empty()) {
      completion.identity = options_.identity(evaluation, worker, *device);
    }
  }
  options_.store->RecordCompletion(
      std::move(completion),
      [self = shared_from_this(), lease](absl::StatusOr<CompletionRecord> result) {
        self->CompleteWritten(lease, std::move(result));
      });
}

void DispatcherCore::CompleteWritten(const QueueLease& lease,
                                     absl::StatusOr<CompletionRecord> result) {
  if (!result.ok()) LogFailedWrite("completion", lease.evaluation, lease.fence, result.status());
  Outbox out;
  std::vector<CompleteDone> sharers;
  {
    absl::MutexLock lock(&mutex_);
    auto it = completing_.find(lease.evaluation);
    if (it != completing_.end()) {
      sharers = std::move(it->second);
      completing_.erase(it);
    }
    if (result.ok()) {
      running_.erase(lease.evaluation);
      completions_repeated_ += static_cast<int64_t>(sharers.size()) - 1;
      queue_.CommitComplete(lease, Mono());
      EnqueueConfirmation(result->confirmation, result->evaluation.worker(), &out);
    } else {
      const WriteFailure failure = Classify(result.status());
      if (failure == WriteFailure::kConflict) {
        ++fenced_by_store_;
        running_.erase(lease.evaluation);
      }
      queue_.FailComplete(lease, failure, Mono());
    }
    Collect(&out);
  }
  if (result.ok() && !result->already_recorded) Observe(result->evaluation);
  Flush(std::move(out));
  bool first = true;
  for (CompleteDone& done : sharers) {
    if (result.ok()) {
      internal::v1::CompleteLeaseResponse response;
      response.set_already_recorded(!first || result->already_recorded);
      done(std::move(response));
    } else {
      done(CompletionError(result.status(), lease));
    }
    first = false;
  }
}

// The queue does not know the evaluation: it is final, or was never there. The store says which.
void DispatcherCore::AskStoreForCompletion(const internal::v1::CompleteLeaseRequest& request,
                                           CompleteDone done) {
  const QueueLease lease{request.ref().evaluation(), request.ref().fence()};
  Completion completion;
  completion.evaluation = lease.evaluation;
  completion.fence = lease.fence;
  completion.outcome = request.outcome();
  completion.timeline = request.timeline();
  completion.time = options_.clock->Now();
  options_.store->RecordCompletion(
      std::move(completion),
      [self = shared_from_this(), lease, done](absl::StatusOr<CompletionRecord> result) {
        Outbox out;
        {
          absl::MutexLock lock(&self->mutex_);
          if (result.ok()) {
            ++self->completions_repeated_;
            self->EnqueueConfirmation(result->confirmation, result->evaluation.worker(), &out);
          } else if (Classify(result.status()) == WriteFailure::kConflict) {
            ++self->fenced_by_store_;
          }
        }
        Flush(std::move(out));
        if (!result.ok()) {
          done(CompletionError(result.status(), lease));
          return;
        }
        if (!result->already_recorded) self->Observe(result->evaluation);
        internal::v1::CompleteLeaseResponse response;
        response.set_already_recorded(result->already_recorded);
        done(std::move(response));
      });
}

// --- Worker rows.

v1::Worker DispatcherCore::MakeWorker(const std::string& name) {
  const WorkerRow& row = rows_[name];
  v1::Worker worker;
  if (row.description != nullptr) worker = *row.description;
  worker.set_name(name);
  const std::optional<WorkerView> view = queue_.ViewWorker(name);
  if (!view.has_value()) return worker;
  // Draining is what an operator wants and outlives silence and restarts.
  worker.set_state(ToProtoState(view->draining ? WorkerState::kDraining : view->state));
  worker.set_active_lease_count(view->active_leases);
  worker.set_completed_count(row.completed_before + view->completed);
  worker.set_infrastructure_failure_count(row.failures_before + view->infrastructure_failures);
  *worker.mutable_register_time() = ToProto(row.register_time);
  if (row.registered) {
    *worker.mutable_last_seen_time() = ToProto(options_.clock->Now() - (Mono() - view->last_seen));
  }
  return worker;
}

void DispatcherCore::WriteWorker(const std::string& name, Outbox* out) {
  WorkerRow& row = rows_[name];
  if (row.writing || stopped_) {
    row.dirty = true;
    return;
  }
  row.writing = true;
  row.dirty = false;
  row.written = Mono();
  out->push_back([self = shared_from_this(), name, worker = MakeWorker(name)] {
    self->options_.store->RecordWorker(worker, [self, name](absl::StatusOr<bool> result) {
      self->WorkerWritten(name, result.ok());
    });
  });
}

void DispatcherCore::WorkerWritten(const std::string& name, bool ok) {
  Outbox out;
  {
    absl::MutexLock lock(&mutex_);
    auto it = rows_.find(name);
    if (it == rows_.end()) return;
    it->second.writing = false;
    if (!ok) {
      it->second.dirty = true;  // Tick tries again
    } else if (it->second.dirty) {
      WriteWorker(name, &out);
    }
  }
  Flush(std::move(out));
}

void DispatcherCore::Tick() {
  Outbox out;
  {
    absl::MutexLock lock(&mutex_);
    if (stopped_) return;
    const absl::Duration now = Mono();
    queue_.Tick(now);
    Collect(&out);
    if (now - rows_checked_ >= kWorkerRowCheckInterval) {
      rows_checked_ = now;
      int written = 0;
      for (auto& [name, row] : rows_) {
        if (row.writing || now - row.written < kWorkerRowInterval) continue;
        const std::optional<WorkerView> view = queue_.ViewWorker(name);
        const bool lost = !view.has_value() || view->state == WorkerState::kLost;
        if (lost && !row.dirty) continue;
        WriteWorker(name, &out);
        if (++written == kWorkerRowsPerCheck) break;
      }
    }
  }
  Flush(std::move(out));
}

}  // namespace assay
