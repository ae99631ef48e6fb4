// Workers: sessions, calls that name a lease, polls. Matching is in queue_matching.cc.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "base/status.h"
#include "server/dispatch/queue.h"

namespace assay {

// --- Sessions.

void DispatchQueue::AddKnownWorker(const std::string& worker, bool draining) {
  AddWorker(worker)->draining = draining;
}

DispatchQueue::Worker* DispatchQueue::AddWorker(const std::string& name) {
  std::unique_ptr<Worker>& slot = workers_[name];
  if (slot == nullptr) {
    slot = std::make_unique<Worker>();
    slot->name = name;
    slot->number = next_number_++;
  }
  return slot.get();
}

// Forgets the lost worker that was silent longest when too many are known.
absl::Status DispatchQueue::MakeRoomForWorker() {
  if (workers_.size() < limits::kWorkersMax) return absl::OkStatus();
  Worker* oldest = nullptr;
  for (auto& [name, worker] : workers_) {
    if (!worker->lost || !worker->leases.empty()) continue;
    if (oldest == nullptr || worker->last_seen < oldest->last_seen) oldest = worker.get();
  }
  if (oldest == nullptr) {
    return ErrorWithReason(absl::StatusCode::kResourceExhausted, "TOO_MANY_WORKERS",
                           absl::StrCat("the coordinator serves ", limits::kWorkersMax,
                                        " workers already; stop some"));
  }
  Emit(QueueAction::Kind::kWorkerForgotten).worker = oldest->name;
  sessions_.erase(oldest->session);
  ClearTimer(&oldest->lost_timer);
  ClearTimer(&oldest->quarantine_timer);
  for (ClassQueue* cls : oldest->classes) {
    --cls->worker_count;
    DropClassIfUnused(cls);
  }
  workers_.erase(std::string(oldest->name));
  return absl::OkStatus();
}

absl::StatusOr<DispatchQueue::Worker*> DispatchQueue::FindSession(
    const std::string& session) const {
  auto it = sessions_.find(session);
  if (it != sessions_.end()) return it->second;
  if (absl::StartsWith(session, absl::StrCat(options_.instance, "-"))) {
    return ErrorWithReason(absl::StatusCode::kAborted, "SESSION_SUPERSEDED",
                           "a newer registration of this worker replaced the session; register "
                           "again if this process should go on");
  }
  return ErrorWithReason(absl::StatusCode::kAborted, "SESSION_UNKNOWN",
                         "the coordinator does not know the session, it may have restarted; "
                         "register again and announce the leases held");
}

absl::StatusOr<std::string> DispatchQueue::SessionWorker(const std::string& session) const {
  ASSAY_ASSIGN_OR_RETURN(Worker * worker, FindSession(session));
  return worker->name;
}

absl::StatusOr<WorkerSession> DispatchQueue::Register(const WorkerRegistration& registration,
                                                      absl::Duration now) {
  if (workers_.count(registration.worker) == 0) ASSAY_RETURN_IF_ERROR(MakeRoomForWorker());
  Worker* worker = AddWorker(registration.worker);
  while (!worker->polls.empty()) {
    ClosePoll(&worker->polls.begin()->second, QueueAction::Kind::kAnswerSuperseded, now);
  }
  sessions_.erase(worker->session);
  worker->session = absl::StrCat(options_.instance, "-", next_number_++);
  sessions_[worker->session] = worker;
  worker->lease_count_max =
      std::clamp(registration.lease_count_max, 1, limits::kLeasesPerWorkerMax);
  WorkerSession result;
  result.session = worker->session;
  TakeOverLeases(worker, registration.held, now, &result.kept);
  SetClasses(worker, registration.classes, now);
  Touch(worker, now);
  RefreshOffers(worker, now);
  return result;
}

// Leases that the worker announced and that still stand go over to its new session. The others end
// soon, not at once: a registration that was delayed on the way must not kill what a newer session
// holds, and the worker learns from its refused calls to register again.
void DispatchQueue::TakeOverLeases(Worker* worker, const std::vector<QueueLease>& held,
                                   absl::Duration now, std::vector<QueueLease>* kept) {
  std::set<Item*> announced;
  for (const QueueLease& lease : held) {
    Item* item = FindLease(lease, worker);
    if (item == nullptr || item->state == State::kCancelledLease) continue;
    if (!announced.insert(item).second) continue;
    item->lease->session = worker->session;
    if (item->state == State::kLeased) ExtendLease(item, now);
    kept->push_back(lease);
  }
  const std::map<uint64_t, Item*> leases = worker->leases;
  for (auto& [sequence, item] : leases) {
    if (announced.count(item) != 0) continue;
    if (item->state == State::kCancelledLease) {
      Remove(item, now);
    } else if (item->state == State::kLeased) {
      Orphan(item, now);
    }
  }
}

// The lease stands only `orphan_grace` longer and takes no slot of its worker any more.
void DispatchQueue::Orphan(Item* item, absl::Duration now) {
  item->lease->orphan = true;
  absl::Duration due = now + options_.orphan_grace;
  if (item->timer.has_value()) due = std::min(due, std::get<0>(*item->timer));
  SetTimer(&item->timer, due, TimerKind::kItemExpiry, item->sequence, {.item = item});
  RefreshWaiting(item->lease->worker);
}

void DispatchQueue::Touch(Worker* worker, absl::Duration now) {
  worker->last_seen = now;
  ArmLost(worker);
  if (worker->lost) {
    worker->lost = false;
    RefreshOffers(worker, now);
  }
}

// An open poll is presence; without one, silence for a lease's length is loss.
void DispatchQueue::ArmLost(Worker* worker) {
  if (!worker->polls.empty()) {
    ClearTimer(&worker->lost_timer);
    return;
  }
  SetTimer(&worker->lost_timer, worker->last_seen + options_.lease_duration, TimerKind::kWorkerLost,
           worker->number, {.worker = worker});
}

WorkerState DispatchQueue::StateOf(const Worker& worker) const {
  if (worker.lost) return WorkerState::kLost;
  if (worker.draining) return WorkerState::kDraining;
  if (worker.quarantined) return WorkerState::kQuarantined;
  return WorkerState::kActive;
}

absl::Status DispatchQueue::SetDraining(const std::string& name, bool draining,
                                        absl::Duration now) {
  auto it = workers_.find(name);
  if (it == workers_.end()) {
    return ErrorWithReason(absl::StatusCode::kNotFound, "WORKER_NOT_FOUND",
                           absl::StrCat("no worker '", name, "' is known"));
  }
  Worker* worker = it->second.get();
  worker->draining = draining;
  if (!draining && worker->quarantined) {
    worker->quarantined = false;
    worker->failures_in_row = 0;
    worker->quarantine_count = 0;
    ClearTimer(&worker->quarantine_timer);
  }
  RefreshOffers(worker, now);
  if (draining) {
    std::vector<Poll*> open;
    for (auto& [id, poll] : worker->polls) {
      if (!poll.granting) open.push_back(&poll);
    }
    for (Poll* poll : open) ClosePoll(poll, QueueAction::Kind::kAnswerEmpty, now);
  }
  Match(worker, now);
  return absl::OkStatus();
}

void DispatchQueue::BlameWorker(Worker* worker, absl::Duration now) {
  ++worker->infrastructure_failures;
  if (++worker->failures_in_row < options_.quarantine_after || worker->quarantined) return;
  worker->quarantined = true;
  absl::Duration length = options_.quarantine_initial;
  for (int i = 0; i < worker->quarantine_count && length < options_.quarantine_max; ++i) {
    length *= 2;
  }
  ++worker->quarantine_count;
  SetTimer(&worker->quarantine_timer, now + std::min(length, options_.quarantine_max),
           TimerKind::kWorkerQuarantine, worker->number, {.worker = worker});
  RefreshOffers(worker, now);
}

std::optional<WorkerView> DispatchQueue::ViewWorker(const std::string& name) const {
  auto it = workers_.find(name);
  if (it == workers_.end()) return std::nullopt;
  const Worker& worker = *it->second;
  WorkerView view;
  view.state = StateOf(worker);
  view.draining = worker.draining;
  view.last_seen = worker.last_seen;
  view.active_leases = BusySlots(worker);
  view.completed = worker.completed;
  view.infrastructure_failures = worker.infrastructure_failures;
  return view;
}

// --- Calls that name a lease.

DispatchQueue::Item* DispatchQueue::FindLease(const QueueLease& ref, const Worker* worker) const {
  Item* item = Find(ref.evaluation);
  if (item == nullptr || item->fence != ref.fence) return nullptr;
  if (item->state != State::kLeased && item->state != State::kCompleting &&
      item->state != State::kCancelledLease) {
    return nullptr;
  }
  return item->lease->worker == worker ? item : nullptr;
}

absl::Status DispatchQueue::Fenced(const QueueLease& lease) {
  ++totals_.fenced_total;
  return ErrorWithReason(absl::StatusCode::kAborted, "LEASE_FENCED",
                         absl::StrCat("the lease on ", lease.evaluation, " with fence ",
                                      lease.fence, " is gone; stop the work"));
}

absl::StatusOr<RenewedLease> DispatchQueue::Renew(const std::string& session,
                                                  const QueueLease& lease, absl::Duration now) {
  ASSAY_ASSIGN_OR_RETURN(Worker * worker, FindSession(session));
  Touch(worker, now);
  Item* item = FindLease(lease, worker);
  if (item == nullptr) return Fenced(lease);
  RenewedLease renewed;
  renewed.drain = worker->draining;
  renewed.duration = options_.lease_duration;
  if (item->state == State::kCancelledLease) {
    renewed.cancel = true;
  } else if (item->state == State::kLeased) {
    ExtendLease(item, now);
    renewed.duration = std::max(std::get<0>(*item->timer) - now, absl::ZeroDuration());
    RefreshWaiting(worker);  // it may have been an orphan, which takes no slot
  }
  return renewed;
}

absl::StatusOr<CompleteStart> DispatchQueue::Complete(const std::string& session,
                                                      const QueueLease& lease, absl::Duration now) {
  ASSAY_ASSIGN_OR_RETURN(Worker * worker, FindSession(session));
  Touch(worker, now);
  if (!Contains(lease.evaluation)) return CompleteStart::kAskStore;
  Item* item = FindLease(lease, worker);
  if (item == nullptr) return Fenced(lease);
  if (item->state == State::kCancelledLease) {
    Remove(item, now);
    return Fenced(lease);
  }
  if (item->state == State::kCompleting) return CompleteStart::kJoin;
  ClearTimer(&item->timer);
  item->lease->orphan = item->lease->unclaimed = item->lease->recovered = false;
  SetItemState(item, State::kCompleting);
  RefreshWaiting(worker);
  return CompleteStart::kRecord;
}

absl::StatusOr<AbandonStart> DispatchQueue::Abandon(const std::string& session,
                                                    const QueueLease& lease,
                                                    const AttemptError& error, absl::Duration now) {
  ASSAY_ASSIGN_OR_RETURN(Worker * worker, FindSession(session));
  Touch(worker, now);
  Item* ending = Find(lease.evaluation);
  if (ending != nullptr && ending->state == State::kEnding && ending->fence == lease.fence) {
    return AbandonStart::kEnding;  // said before, or expired
  }
  Item* item = FindLease(lease, worker);
  if (item == nullptr) return Fenced(lease);
  if (item->state == State::kCancelledLease) {
    Remove(item, now);
    return AbandonStart::kGone;
  }
  // A completion that is being written wins; the abandon comes too late.
  if (item->state == State::kCompleting) return Fenced(lease);
  ++totals_.abandoned_total;
  EndLease(item, error, Blame::kFull, now);
  return AbandonStart::kEnding;
}

void DispatchQueue::MarkAnswered(const QueueLease& lease) {
  Item* item = Find(lease.evaluation);
  if (item == nullptr || item->state != State::kLeased || item->fence != lease.fence) return;
  item->lease->answered = true;
}

bool DispatchQueue::FailDelivery(const QueueLease& lease, const AttemptError& error,
                                 absl::Duration now) {
  Item* item = Find(lease.evaluation);
  if (item == nullptr || item->state != State::kLeased || item->fence != lease.fence) return false;
  if (item->lease->answered) return false;
  EndLease(item, error, Blame::kNone, now);
  return true;
}

// --- Polls.

absl::Status DispatchQueue::Acquire(const std::string& session, const std::string& poll_id,
                                    absl::Duration wait, absl::Duration now) {
  ASSAY_ASSIGN_OR_RETURN(Worker * worker, FindSession(session));
  wait = std::clamp(wait, absl::ZeroDuration(), absl::Seconds(limits::kLongPollSecondsMax));
  Touch(worker, now);
  bool granting = false;
  for (auto& [sequence, item] : worker->leases) {
    if (item->lease->poll_id != poll_id || item->lease->session != session) continue;
    granting = item->state == State::kGranting;
    if (item->state != State::kLeased) continue;
    ExtendLease(item, now);
    RefreshWaiting(worker);
    QueueAction& action = Emit(QueueAction::Kind::kAnswerLease);
    action.evaluation = item->evaluation;
    action.worker = worker->name;
    action.fence = item->fence;
    action.attempt = item->attempts + 1;
    action.session = session;
    action.poll_id = poll_id;
    return absl::OkStatus();
  }
  auto known = worker->polls.find(poll_id);
  if (known == worker->polls.end() &&
      worker->polls.size() >= 2 * static_cast<size_t>(worker->lease_count_max)) {
    return ErrorWithReason(absl::StatusCode::kResourceExhausted, "TOO_MANY_POLLS",
                           absl::StrCat(worker->name, " has ", worker->polls.size(),
                                        " open polls; wait for their answers"));
  }
  Poll* poll = OpenPoll(worker, poll_id, granting, now + wait);
  Match(worker, now);
  if (wait == absl::ZeroDuration() && worker->polls.count(poll_id) != 0 && !poll->granting) {
    ClosePoll(poll, QueueAction::Kind::kAnswerEmpty, now);
  }
  return absl::OkStatus();
}

// Opens the poll, or moves the deadline of the one that is open.
DispatchQueue::Poll* DispatchQueue::OpenPoll(Worker* worker, const std::string& poll_id,
                                             bool granting, absl::Duration deadline) {
  Poll* poll = &worker->polls[poll_id];
  if (poll->worker == nullptr) {
    poll->worker = worker;
    poll->poll_id = poll_id;
    poll->sequence = next_sequence_++;
    poll->granting = granting;
  }
  poll->deadline = deadline;
  if (!poll->granting) {
    SetTimer(&poll->timer, deadline, TimerKind::kPoll, poll->sequence, {.poll = poll});
  }
  ArmLost(worker);
  RefreshWaiting(worker);
  return poll;
}

// The grant that the poll of `item` waited for failed: it waits on, until its deadline.
void DispatchQueue::ReopenPoll(Item* item) {
  Worker* worker = item->lease->worker;
  if (item->lease->session != worker->session) return;
  auto it = worker->polls.find(item->lease->poll_id);
  if (it == worker->polls.end() || !it->second.granting) return;
  Poll* poll = &it->second;
  poll->granting = false;
  SetTimer(&poll->timer, poll->deadline, TimerKind::kPoll, poll->sequence, {.poll = poll});
}

void DispatchQueue::ClosePoll(Poll* poll, QueueAction::Kind kind, absl::Duration now) {
  Worker* worker = poll->worker;
  QueueAction& action = Emit(kind);
  action.session = worker->session;
  action.poll_id = poll->poll_id;
  action.drain = worker->draining;
  ClearTimer(&poll->timer);
  worker->polls.erase(std::string(poll->poll_id));
  worker->last_seen = now;
  ArmLost(worker);
  RefreshWaiting(worker);
}

void DispatchQueue::ForgetPoll(const std::string& session, const std::string& poll_id,
                               absl::Duration now) {
  auto found = FindSession(session);
  if (!found.ok()) return;
  Worker* worker = *found;
  auto it = worker->polls.find(poll_id);
  if (it != worker->polls.end()) {
    ClearTimer(&it->second.timer);
    worker->polls.erase(it);
    ArmLost(worker);
    RefreshWaiting(worker);
    return;
  }
  for (auto& [sequence, item] : worker->leases) {
    if (item->state != State::kLeased || item->lease->poll_id != poll_id ||
        item->lease->session != session) {
      continue;
    }
    if (item->lease->answered) return;
    item->lease->unclaimed = true;
    Orphan(item, now);
    Match(worker, now);
    return;
  }
}

}  // namespace assay
