// Items, their timers and the results of writes. Workers are in queue_workers.cc, matching in
// queue_matching.cc.
#include "server/dispatch/queue.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/limits.h"
#include "base/random.h"
#include "base/status.h"

namespace assay {
namespace {

// FNV-1a: the same on every platform, for the jitter.
uint64_t HashName(const std::string& name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (unsigned char c : name) hash = (hash ^ c) * 0x100000001b3u;
  return hash;
}

absl::Duration Doubled(absl::Duration initial, absl::Duration max, int times) {
  absl::Duration delay = initial;
  for (int i = 0; i < times && delay < max; ++i) delay *= 2;
  return std::min(delay, max);
}

bool IsFinalStep(const AttemptError& error, int attempts, int attempts_max) {
  return !error.code.empty() && attempts + 1 >= attempts_max;
}

}  // namespace

// --- Timers.

void DispatchQueue::SetTimer(std::optional<TimerKey>* slot, absl::Duration due, TimerKind kind,
                             uint64_t id, TimerTarget target) {
  ClearTimer(slot);
  *slot = TimerKey(due, kind, id);
  timers_[**slot] = target;
}

void DispatchQueue::ClearTimer(std::optional<TimerKey>* slot) {
  if (!slot->has_value()) return;
  timers_.erase(**slot);
  slot->reset();
}

void DispatchQueue::Tick(absl::Duration now) {
  while (!timers_.empty() && std::get<0>(timers_.begin()->first) <= now) {
    const TimerKind kind = std::get<1>(timers_.begin()->first);
    const TimerTarget target = timers_.begin()->second;
    Fire(kind, target, now);
  }
  constexpr int kNotesPerTick = 100;
  for (int i = 0; i < kNotesPerTick && !waiting_notes_.empty(); ++i) {
    auto note = waiting_notes_.begin();
    if (note->first > now) break;
    const Item* item = Find(note->second);
    if (item != nullptr && (item->state == State::kReady || item->state == State::kBackoff)) {
      Emit(QueueAction::Kind::kWaiting).evaluation = note->second;
    }
    waiting_notes_.erase(note);
  }
}

// Clears the timer of its owner first: every handler may set it anew.
void DispatchQueue::Fire(TimerKind kind, TimerTarget target, absl::Duration now) {
  switch (kind) {
    case TimerKind::kItemBackoff:
      ClearTimer(&target.item->timer);
      MakeReady(target.item, now);
      return;
    case TimerKind::kItemExpiry:
      ClearTimer(&target.item->timer);
      Expire(target.item, now);
      return;
    case TimerKind::kItemEndAgain:
      ClearTimer(&target.item->timer);
      EmitEnd(*target.item);
      return;
    case TimerKind::kItemResyncAgain:
      ClearTimer(&target.item->timer);
      Emit(QueueAction::Kind::kResync).evaluation = target.item->evaluation;
      return;
    case TimerKind::kItemAnyWorker:
      ClearTimer(&target.item->timer);
      Place(target.item, now);
      return;
    case TimerKind::kPoll:
      ClearTimer(&target.poll->timer);
      ClosePoll(target.poll, QueueAction::Kind::kAnswerEmpty, now);
      return;
    case TimerKind::kWorkerLost:
      ClearTimer(&target.worker->lost_timer);
      target.worker->lost = true;
      RefreshOffers(target.worker, now);
      return;
    case TimerKind::kWorkerQuarantine:
      ClearTimer(&target.worker->quarantine_timer);
      target.worker->quarantined = false;
      // On probation: one more failure sends it back, for longer.
      target.worker->failures_in_row = options_.quarantine_after - 1;
      RefreshOffers(target.worker, now);
      Match(target.worker, now);
      return;
    case TimerKind::kStorageResume:
      ClearTimer(&storage_timer_);
      MatchWaiting(waiting_, now);
      return;
  }
}

// --- Items.

DispatchQueue::Item* DispatchQueue::Find(const std::string& evaluation) const {
  auto it = items_.find(evaluation);
  return it == items_.end() ? nullptr : it->second.get();
}

DispatchQueue::Item* DispatchQueue::AddItem(const QueueItem& input, absl::Duration now) {
  auto owned = std::make_unique<Item>();
  Item* item = owned.get();
  item->evaluation = input.evaluation;
  item->cls = GetClass(input.device_class, now);
  ++item->cls->item_count;
  item->priority = input.priority;
  item->sequence = next_sequence_++;
  item->created = now - input.age;
  item->state = State::kResyncing;  // counted nowhere; the caller sets the real one
  item->attempts = input.attempts;
  item->attempts_max = input.attempts_max > 0 ? input.attempts_max : options_.attempts_max;
  item->fence = input.fence;
  item->other_than = input.other_than;
  item->any_worker_from = item->created + options_.other_worker_wait;
  items_.emplace(item->evaluation, std::move(owned));
  return item;
}

void DispatchQueue::Enqueue(const QueueItem& input, absl::Duration now) {
  if (Contains(input.evaluation)) return;
  Item* item = AddItem(input, now);
  if (item->attempts > 0 && !input.worker.empty()) item->failed_on.push_back(input.worker);
  if (item->cls->offers.empty() && waiting_notes_.size() < limits::kWaitingNotesMax) {
    waiting_notes_.emplace(now + options_.placement_grace, item->evaluation);
  }
  MakeReady(item, now);
}

void DispatchQueue::Recover(const QueueItem& input, absl::Duration now) {
  if (Contains(input.evaluation)) return;
  Item* item = AddItem(input, now);
  Worker* worker = AddWorker(input.worker);
  item->lease = std::make_unique<LeaseState>();
  item->lease->worker = worker;
  item->lease->granted = now;
  item->lease->recovered = true;
  worker->leases[item->sequence] = item;
  SetItemState(item, State::kLeased);
  SetTimer(&item->timer, now + options_.restart_grace, TimerKind::kItemExpiry, item->sequence,
           {.item = item});
}

void DispatchQueue::SetItemState(Item* item, State state) {
  auto queued = [](State s) { return s == State::kReady || s == State::kBackoff; };
  auto leased = [](State s) { return s == State::kLeased || s == State::kCompleting; };
  leased_count_ += int{leased(state)} - int{leased(item->state)};
  const int change = int{queued(state)} - int{queued(item->state)};
  item->state = state;
  if (change == 0) return;
  item->cls->queued_count += change;
  if (item->cls->registered_count == 0) unplaceable_count_ += change;
  if (change > 0) {
    queued_by_age_.emplace(item->created, item->sequence);
  } else {
    queued_by_age_.erase({item->created, item->sequence});
  }
}

void DispatchQueue::MakeReady(Item* item, absl::Duration now) {
  item->lease.reset();
  SetItemState(item, State::kReady);
  const bool anywhere = item->failed_on.empty() && item->other_than.empty();
  ReadySet& set = anywhere ? item->cls->fresh : item->cls->retry;
  set[{-item->priority, item->sequence}] = item;
  if (!item->other_than.empty() && now < item->any_worker_from) {
    SetTimer(&item->timer, item->any_worker_from, TimerKind::kItemAnyWorker, item->sequence,
             {.item = item});
  }
  Place(item, now);
}

void DispatchQueue::EraseReady(Item* item) {
  const ReadyKey key{-item->priority, item->sequence};
  if (item->cls->fresh.erase(key) == 0) item->cls->retry.erase(key);
}

void DispatchQueue::Remove(Item* item, absl::Duration now) {
  ClearTimer(&item->timer);
  if (item->state == State::kReady) EraseReady(item);
  SetItemState(item, State::kResyncing);
  Worker* worker = item->lease != nullptr ? item->lease->worker : nullptr;
  if (worker != nullptr) worker->leases.erase(item->sequence);
  ClassQueue* cls = item->cls;
  --cls->item_count;
  items_.erase(item->evaluation);
  DropClassIfUnused(cls);
  if (worker != nullptr) {
    RefreshWaiting(worker);
    Match(worker, now);
  }
}

absl::Duration DispatchQueue::Backoff(const Item& item) const {
  // The first uncounted return is free; a worker that keeps giving back must not spin.
  const int n = item.attempts + std::max(0, item.returns - 1);
  if (n <= 0) return absl::ZeroDuration();
  const uint64_t bits =
      MixBits(HashName(item.evaluation) + kGoldenGamma * static_cast<uint64_t>(n));
  const double jitter = 0.5 + 0.5 * (static_cast<double>(bits >> 11) * 0x1.0p-53);
  return Doubled(options_.backoff_initial, options_.backoff_max, n - 1) * jitter;
}

void DispatchQueue::ExtendLease(Item* item, absl::Duration now) {
  LeaseState& lease = *item->lease;
  lease.orphan = lease.unclaimed = lease.recovered = false;
  const absl::Duration due =
      std::min(now + options_.lease_duration, lease.granted + options_.lease_lifetime_max);
  SetTimer(&item->timer, due, TimerKind::kItemExpiry, item->sequence, {.item = item});
}

void DispatchQueue::Expire(Item* item, absl::Duration now) {
  if (item->state == State::kCancelledLease) {
    Remove(item, now);
    return;
  }
  const LeaseState& lease = *item->lease;
  ++totals_.expired_total;
  AttemptError error;
  Blame blame = Blame::kFull;
  if (lease.unclaimed) {
    blame = Blame::kNone;  // never handed over: no attempt
  } else if (lease.recovered) {
    error = {"UNAVAILABLE", "LEASE_LOST_IN_RESTART",
             absl::StrCat("the coordinator restarted and ", lease.worker->name,
                          " did not announce the lease again")};
    blame = Blame::kAvoid;
  } else if (lease.orphan) {
    error = {"UNAVAILABLE", "WORKER_RESTARTED",
             absl::StrCat(lease.worker->name, " registered anew without this lease")};
  } else if (now >= lease.granted + options_.lease_lifetime_max) {
    error = {
        "DEADLINE_EXCEEDED", "LEASE_TOO_OLD",
        absl::StrCat(lease.worker->name, " renewed the lease for ",
                     absl::FormatDuration(options_.lease_lifetime_max), " and did not finish")};
  } else {
    error = {"UNAVAILABLE", "LEASE_EXPIRED",
             absl::StrCat(lease.worker->name, " did not renew the lease for ",
                          absl::FormatDuration(options_.lease_duration))};
  }
  EndLease(item, error, blame, now);
}

void DispatchQueue::EndLease(Item* item, const AttemptError& error, Blame blame,
                             absl::Duration now) {
  LeaseState& lease = *item->lease;
  Worker* worker = lease.worker;
  ClearTimer(&item->timer);
  SetItemState(item, State::kEnding);
  item->write_failures = 0;
  lease.error = error;
  lease.final = IsFinalStep(error, item->attempts, item->attempts_max);
  if (blame != Blame::kNone && !error.code.empty() &&
      std::count(item->failed_on.begin(), item->failed_on.end(), worker->name) == 0) {
    item->failed_on.push_back(worker->name);
  }
  EmitEnd(*item);
  if (blame == Blame::kFull && !error.code.empty()) BlameWorker(worker, now);
  DetachLease(item, now);
}

void DispatchQueue::EmitEnd(const Item& item) {
  QueueAction& action = Emit(QueueAction::Kind::kRecordEnd);
  action.evaluation = item.evaluation;
  action.fence = item.fence;
  action.error = item.lease->error;
  action.final = item.lease->final;
}

void DispatchQueue::Resync(Item* item, absl::Duration now) {
  ClearTimer(&item->timer);
  SetItemState(item, State::kResyncing);
  item->write_failures = 0;
  Emit(QueueAction::Kind::kResync).evaluation = item->evaluation;
  if (item->lease != nullptr && item->lease->worker != nullptr) DetachLease(item, now);
}

void DispatchQueue::Cancelled(const std::string& evaluation, absl::Duration now) {
  Item* item = Find(evaluation);
  if (item == nullptr) return;
  switch (item->state) {
    case State::kReady:
    case State::kBackoff:
    case State::kResyncing:
      Remove(item, now);
      return;
    case State::kEnding:
      if (item->timer.has_value()) {  // no write in flight
        Remove(item, now);
        return;
      }
      item->cancelled = true;
      return;
    case State::kGranting:
    case State::kCompleting:
      item->cancelled = true;
      return;
    case State::kLeased:
      if (item->lease->orphan || item->lease->recovered) {
        Remove(item, now);
        return;
      }
      SetItemState(item, State::kCancelledLease);
      return;
    case State::kCancelledLease:
      return;
  }
}

void DispatchQueue::Finished(const std::string& evaluation, absl::Duration now) {
  Item* item = Find(evaluation);
  if (item == nullptr) return;
  if (item->state != State::kReady && item->state != State::kBackoff) return;
  if (item->state == State::kReady) EraseReady(item);
  Resync(item, now);
}

// --- Results of writes.

void DispatchQueue::CommitGrant(const QueueLease& ref, absl::Duration now) {
  Item* item = Find(ref.evaluation);
  if (item == nullptr || item->state != State::kGranting || item->fence != ref.fence) return;
  StorageWorks();
  Worker* worker = item->lease->worker;
  if (item->cancelled) {
    ReopenPoll(item);
    Remove(item, now);
    return;
  }
  ++totals_.granted_total;
  SetItemState(item, State::kLeased);
  item->lease->granted = now;
  if (item->lease->session != worker->session) {
    // Its worker registered anew meanwhile and does not know of it.
    EndLease(item, AttemptError(), Blame::kNone, now);
    return;
  }
  ExtendLease(item, now);
  auto poll = worker->polls.find(item->lease->poll_id);
  if (poll == worker->polls.end()) {
    item->lease->unclaimed = true;
    Orphan(item, now);
    Match(worker, now);
    return;
  }
  QueueAction& action = Emit(QueueAction::Kind::kAnswerLease);
  action.evaluation = item->evaluation;
  action.worker = worker->name;
  action.fence = item->fence;
  action.attempt = item->attempts + 1;
  action.session = worker->session;
  action.poll_id = poll->first;
  ClearTimer(&poll->second.timer);
  worker->polls.erase(poll);
  worker->last_seen = now;
  ArmLost(worker);
  RefreshWaiting(worker);
}

void DispatchQueue::FailGrant(const QueueLease& ref, WriteFailure failure, absl::Duration now) {
  Item* item = Find(ref.evaluation);
  if (item == nullptr || item->state != State::kGranting || item->fence != ref.fence) return;
  if (failure == WriteFailure::kStorage) PauseGrants(now);
  ReopenPoll(item);
  if (item->cancelled) {
    Remove(item, now);
  } else if (failure == WriteFailure::kConflict) {
    Resync(item, now);
  } else {
    DetachLease(item, now);
    MakeReady(item, now);
  }
}

void DispatchQueue::CommitComplete(const QueueLease& ref, absl::Duration now) {
  Item* item = Find(ref.evaluation);
  if (item == nullptr || item->state != State::kCompleting || item->fence != ref.fence) return;
  StorageWorks();
  ++totals_.completed_total;
  Worker* worker = item->lease->worker;
  ++worker->completed;
  worker->failures_in_row = 0;
  worker->quarantine_count = 0;
  Remove(item, now);
}

void DispatchQueue::FailComplete(const QueueLease& ref, WriteFailure failure, absl::Duration now) {
  Item* item = Find(ref.evaluation);
  if (item == nullptr || item->state != State::kCompleting || item->fence != ref.fence) return;
  if (item->cancelled) {
    Remove(item, now);
  } else if (failure == WriteFailure::kConflict) {
    Resync(item, now);
  } else {
    // The worker still has the outcome and tries again.
    SetItemState(item, State::kLeased);
    item->lease->granted = std::max(item->lease->granted, now - options_.lease_lifetime_max / 2);
    ExtendLease(item, now);
  }
}

void DispatchQueue::CommitEnd(const QueueLease& ref, absl::Duration now) {
  Item* item = Find(ref.evaluation);
  if (item == nullptr || item->state != State::kEnding || item->fence != ref.fence) return;
  StorageWorks();
  const bool counted = !item->lease->error.code.empty();
  if (item->cancelled || item->lease->final) {
    Remove(item, now);
    return;
  }
  (counted ? item->attempts : item->returns) += 1;
  item->lease.reset();
  const absl::Duration delay = Backoff(*item);
  if (!counted && item->returns <= 1) {
    MakeReady(item, now);
    return;
  }
  SetItemState(item, State::kBackoff);
  SetTimer(&item->timer, now + delay, TimerKind::kItemBackoff, item->sequence, {.item = item});
}

void DispatchQueue::FailEnd(const QueueLease& ref, WriteFailure failure, absl::Duration now) {
  Item* item = Find(ref.evaluation);
  if (item == nullptr || item->state != State::kEnding || item->fence != ref.fence) return;
  if (item->cancelled) {
    Remove(item, now);
  } else if (failure == WriteFailure::kConflict) {
    Resync(item, now);
  } else {
    const absl::Duration delay =
        Doubled(options_.storage_pause_initial, options_.storage_pause_max, item->write_failures++);
    SetTimer(&item->timer, now + delay, TimerKind::kItemEndAgain, item->sequence, {.item = item});
  }
}

void DispatchQueue::Resynced(const std::string& evaluation, std::optional<StoredState> stored,
                             absl::Duration now) {
  Item* item = Find(evaluation);
  if (item == nullptr || item->state != State::kResyncing || item->timer.has_value()) return;
  if (!stored.has_value()) {
    Remove(item, now);
    return;
  }
  item->attempts = stored->attempts;
  if (!stored->running) {
    item->fence = std::max(item->fence, stored->fence);
    MakeReady(item, now);
    return;
  }
  // A write that was reported as failed had been applied after all; nobody holds that lease.
  item->fence = stored->fence;
  item->lease = std::make_unique<LeaseState>();
  SetItemState(item, State::kEnding);
  item->write_failures = 0;
  EmitEnd(*item);
}

void DispatchQueue::ResyncFailed(const std::string& evaluation, absl::Duration now) {
  Item* item = Find(evaluation);
  if (item == nullptr || item->state != State::kResyncing || item->timer.has_value()) return;
  const absl::Duration delay =
      Doubled(options_.storage_pause_initial, options_.storage_pause_max, item->write_failures++);
  SetTimer(&item->timer, now + delay, TimerKind::kItemResyncAgain, item->sequence, {.item = item});
}

void DispatchQueue::PauseGrants(absl::Duration now) {
  // Several grants of one failed group count once.
  if (storage_timer_.has_value()) return;
  const absl::Duration delay =
      Doubled(options_.storage_pause_initial, options_.storage_pause_max, storage_failures_++);
  SetTimer(&storage_timer_, now + delay, TimerKind::kStorageResume, 0, {});
}

// --- Views.

std::string DispatchQueue::WaitingReason(const std::string& evaluation, absl::Duration now) const {
  const Item* item = Find(evaluation);
  if (item == nullptr) return "";
  if (item->state != State::kReady && item->state != State::kBackoff) return "";
  const ClassQueue& cls = *item->cls;
  if (!cls.offers.empty() || now - cls.unoffered_since < options_.placement_grace) return "";
  if (cls.registered_count > 0) {
    return absl::StrCat("every worker that offers device class '", cls.name,
                        "' is draining or quarantined");
  }
  if (registered_classes_.empty()) return "no worker is registered";
  constexpr size_t kShown = 8;
  std::vector<std::string> shown;
  for (const std::string& name : registered_classes_) {
    if (shown.size() == kShown) {
      shown.push_back("...");
      break;
    }
    shown.push_back(name);
  }
  return absl::StrCat("no registered worker offers device class '", cls.name,
                      "'; registered: ", absl::StrJoin(shown, ", "));
}

absl::Duration DispatchQueue::Remaining(const QueueLease& lease, absl::Duration now) const {
  const Item* item = Find(lease.evaluation);
  if (item == nullptr || item->state != State::kLeased || item->fence != lease.fence) {
    return absl::ZeroDuration();
  }
  return std::max(std::get<0>(*item->timer) - now, absl::ZeroDuration());
}

QueueCounters DispatchQueue::Counters(absl::Duration now) const {
  QueueCounters counters = totals_;
  counters.queued = static_cast<int64_t>(queued_by_age_.size());
  counters.leased = leased_count_;
  counters.unplaceable = unplaceable_count_;
  if (!queued_by_age_.empty()) {
    counters.oldest_queued_seconds = absl::ToDoubleSeconds(now - queued_by_age_.begin()->first);
  }
  counters.workers_active = active_count_;
  return counters;
}

QueueAction& DispatchQueue::Emit(QueueAction::Kind kind) {
  actions_.emplace_back().kind = kind;
  return actions_.back();
}

}  // namespace assay
