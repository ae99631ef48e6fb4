// The dispatcher's blocking reads and what comes of them: preparing a grant, answering a poll
// again, resyncing with the store, notices of waiting.
#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "server/dispatch/dispatcher_core.h"
#include "server/dispatch/store_errors.h"
#include "server/dispatch/times.h"
#include "store/confirmation.h"

namespace assay {

// Reads what the worker will need, so that the lease is recorded with the very version of the
// problem that it is given, and then records it.
void DispatcherCore::PrepareGrant(const QueueAction& action) {
  const QueueLease lease{action.evaluation, action.fence};
  const absl::StatusOr<v1::Evaluation> evaluation =
      options_.store->GetEvaluation(action.evaluation, false);
  auto work = std::make_shared<Work>(evaluation.ok() ? ReadWork(*evaluation, 0)
                                                     : Work(evaluation.status()));
  if (!evaluation.ok() || IsPassing(work->status())) {
    LogFailedWrite("read_before_lease", lease.evaluation, lease.fence, work->status());
    Outbox out;
    {
      absl::MutexLock lock(&mutex_);
      queue_.FailGrant(lease, Classify(work->status()), Mono());
      Collect(&out);
    }
    Flush(std::move(out));
    return;
  }
  LeaseGrant grant;
  grant.evaluation = action.evaluation;
  grant.worker = action.worker;
  grant.fence = action.fence;
  grant.attempt = action.attempt;
  grant.problem_version = work->ok() ? (*work)->problem().version() : 0;
  grant.time = options_.clock->Now();
  options_.store->RecordLease(std::move(grant), [self = shared_from_this(), lease,
                                                 work](absl::StatusOr<v1::Evaluation> result) {
    self->GrantDone(lease, work, std::move(result));
  });
}

// Another answer to a poll whose first answer was lost.
void DispatcherCore::Redeliver(const QueueAction& action) {
  v1::Evaluation evaluation;
  int version = 0;
  {
    absl::MutexLock lock(&mutex_);
    const Running* running = FindRunning({action.evaluation, action.fence});
    if (running != nullptr) {
      evaluation = running->evaluation;
      version = running->problem_version;
    }
  }
  auto work = std::make_shared<Work>(absl::AbortedError("the lease is gone"));
  if (!evaluation.name().empty()) *work = ReadWork(evaluation, version);
  Deliver(action, std::move(work));
}

DispatcherCore::Running* DispatcherCore::FindRunning(const QueueLease& lease) {
  auto it = running_.find(lease.evaluation);
  return it != running_.end() && it->second.fence == lease.fence ? &it->second : nullptr;
}

void DispatcherCore::Deliver(const QueueAction& action, std::shared_ptr<Work> work) {
  const QueueLease lease{action.evaluation, action.fence};
  Outbox out;
  std::vector<PollDone> waiters;
  absl::Duration remaining;
  bool unreadable = false;  // now, but an earlier answer may have arrived: the worker asks again
  {
    absl::MutexLock lock(&mutex_);
    waiters = TakeWaiters({action.session, action.poll_id});
    remaining = queue_.Remaining(lease, Mono());
    if (work->ok() && !waiters.empty()) queue_.MarkAnswered(lease);
    if (remaining > absl::ZeroDuration() && !work->ok()) {
      Log(LogLevel::kError, "work_unreadable",
          {{"evaluation", lease.evaluation}, {"error", work->status().ToString()}});
      // A passing trouble of the store costs no attempt.
      AttemptError error;
      if (!IsPassing(work->status())) {
        error.code = absl::StatusCodeToString(work->status().code());
      }
      error.reason = "WORK_UNREADABLE";
      error.message = std::string(work->status().message());
      unreadable = !queue_.FailDelivery(lease, error, Mono());
    }
    Collect(&out);
  }
  if (unreadable) {
    for (PollDone& done : waiters) {
      done(ErrorWithReason(absl::StatusCode::kUnavailable, "WORK_UNREADABLE",
                           std::string(work->status().message())));
    }
    Flush(std::move(out));
    return;
  }
  internal::v1::AcquireLeaseResponse response;
  if (remaining > absl::ZeroDuration() && work->ok()) {
    internal::v1::Lease* granted = response.mutable_lease();
    granted->mutable_ref()->set_evaluation(lease.evaluation);
    granted->mutable_ref()->set_fence(lease.fence);
    granted->set_attempt(action.attempt);
    *granted->mutable_duration() = ToProto(remaining);
    *granted->mutable_work() = std::move(**work);
  }
  for (size_t i = 0; i + 1 < waiters.size(); ++i) waiters[i](response);
  if (!waiters.empty()) waiters.back()(std::move(response));
  Flush(std::move(out));
}

// No cache: only a read tells the newest version of a problem, and that read brings it along.
DispatcherCore::Work DispatcherCore::ReadWork(const v1::Evaluation& evaluation,
                                              int problem_version) {
  internal::v1::WorkSpec work;
  if (!evaluation.replay_of().empty()) {
    ASSAY_ASSIGN_OR_RETURN(const v1::Evaluation replayed,
                           options_.store->GetEvaluation(evaluation.replay_of(), false));
    ASSAY_ASSIGN_OR_RETURN(const RanOn ran_on, options_.store->GetRanOn(evaluation.replay_of()));
    work.set_nonce(replayed.outcome().nonce());
    problem_version = ran_on.problem_version;
  }
  ASSAY_ASSIGN_OR_RETURN(*work.mutable_problem(),
                         options_.store->GetProblem(evaluation.problem(), problem_version));
  ASSAY_ASSIGN_OR_RETURN(*work.mutable_candidate(),
                         options_.store->GetCandidate(evaluation.candidate()));
  if (!evaluation.baseline_candidate().empty()) {
    ASSAY_ASSIGN_OR_RETURN(*work.mutable_baseline_candidate(),
                           options_.store->GetCandidate(evaluation.baseline_candidate()));
  }
  *work.mutable_evaluation() = evaluation;
  return work;
}

void DispatcherCore::Resync(const std::string& evaluation) {
  std::optional<DispatchQueue::StoredState> stored;
  std::optional<v1::Evaluation> confirmation;
  bool read = true;
  const absl::StatusOr<v1::Evaluation> current = options_.store->GetEvaluation(evaluation, false);
  if (!current.ok()) {
    read = current.status().code() == absl::StatusCode::kNotFound;
  } else if (current->state() == v1::QUEUED || current->state() == v1::RUNNING) {
    // Rare enough: the list is the only read that tells the fence.
    const absl::StatusOr<std::vector<UnfinishedEvaluation>> all = options_.store->ListUnfinished();
    read = all.ok();
    const std::vector<UnfinishedEvaluation> none;
    for (const UnfinishedEvaluation& unfinished : all.ok() ? *all : none) {
      if (unfinished.evaluation.name() != evaluation) continue;
      const bool running = unfinished.evaluation.state() == v1::RUNNING;
      stored = {running, unfinished.fence,
                std::max(0, unfinished.evaluation.attempt_count() - int{running})};
    }
  } else if (current->state() == v1::SUCCEEDED && CountsForRanks(*current)) {
    // Recorded without our hearing of it, perhaps together with a second run.
    absl::StatusOr<v1::Evaluation> second =
        options_.store->GetEvaluation(ConfirmationName(evaluation), false);
    read = second.ok() || absl::IsNotFound(second.status());
    if (second.ok()) confirmation = *std::move(second);
  }
  Outbox out;
  {
    absl::MutexLock lock(&mutex_);
    if (read) {
      queue_.Resynced(evaluation, stored, Mono());
      if (confirmation.has_value()) EnqueueConfirmation(confirmation, current->worker(), &out);
    } else {
      queue_.ResyncFailed(evaluation, Mono());
    }
    Collect(&out);
  }
  Flush(std::move(out));
}

void DispatcherCore::SendNotices(const std::vector<std::string>& evaluations) {
  for (const std::string& name : evaluations) {
    absl::StatusOr<v1::Evaluation> evaluation = options_.store->GetEvaluation(name, false);
    if (!evaluation.ok() || evaluation->state() != v1::QUEUED) continue;
    Decorate(&*evaluation);
    Observe(*evaluation);
  }
  Outbox out;
  {
    absl::MutexLock lock(&mutex_);
    notices_running_ = false;
    Collect(&out);
  }
  Flush(std::move(out));
}

}  // namespace assay
