// Device classes, and which item goes to which worker.
#include <algorithm>

#include "base/limits.h"
#include "server/dispatch/queue.h"

namespace assay {

// --- Classes.

DispatchQueue::ClassQueue* DispatchQueue::GetClass(const std::string& name, absl::Duration now) {
  auto [it, inserted] = classes_.try_emplace(name);
  if (inserted) {
    it->second.name = name;
    it->second.unoffered_since = now;
  }
  return &it->second;
}

void DispatchQueue::DropClassIfUnused(ClassQueue* cls) {
  if (cls->item_count == 0 && cls->worker_count == 0) classes_.erase(std::string(cls->name));
}

void DispatchQueue::SetClasses(Worker* worker, const std::vector<std::string>& names,
                               absl::Duration now) {
  const std::set<std::string> wanted(names.begin(), names.end());
  std::set<std::string> have;
  for (const ClassQueue* cls : worker->classes) have.insert(cls->name);
  if (wanted == have) return;
  CountRegistered(worker, false);
  CountActive(worker, false, now);
  RefreshWaiting(worker);
  const std::vector<ClassQueue*> old = std::move(worker->classes);
  worker->classes.clear();
  for (const std::string& name : wanted) {
    worker->classes.push_back(GetClass(name, now));
    ++worker->classes.back()->worker_count;
  }
  for (ClassQueue* cls : old) {
    if (!cls->retry.empty()) MatchWaiting(cls->waiting, now);  // may be theirs now
    --cls->worker_count;
    DropClassIfUnused(cls);
  }
}

void DispatchQueue::CountRegistered(Worker* worker, bool registered) {
  if (worker->counted_registered == registered) return;
  worker->counted_registered = registered;
  for (ClassQueue* cls : worker->classes) {
    if (registered && cls->registered_count++ == 0) {
      unplaceable_count_ -= cls->queued_count;
      registered_classes_.insert(cls->name);
    } else if (!registered && --cls->registered_count == 0) {
      unplaceable_count_ += cls->queued_count;
      registered_classes_.erase(cls->name);
    }
  }
}

void DispatchQueue::CountActive(Worker* worker, bool active, absl::Duration now) {
  if (worker->counted_active == active) return;
  worker->counted_active = active;
  active_count_ += active ? 1 : -1;
  for (ClassQueue* cls : worker->classes) {
    if (active) {
      if (cls->offers.empty()) NoteWaiting(cls, now);
      cls->offers[worker->number] = worker;
      continue;
    }
    cls->offers.erase(worker->number);
    if (cls->offers.empty()) {
      cls->unoffered_since = now;
      NoteWaiting(cls, now + options_.placement_grace);
    }
  }
}

// What waits in `cls` gets a look at its waiting reason at `due`. Bounded: a notice that does not
// fit is not sent; whoever reads the evaluation sees the reason all the same.
void DispatchQueue::NoteWaiting(ClassQueue* cls, absl::Duration due) {
  for (const ReadySet* set : {&cls->fresh, &cls->retry}) {
    for (auto& [key, item] : *set) {
      if (waiting_notes_.size() >= limits::kWaitingNotesMax) return;
      waiting_notes_.emplace(due, item->evaluation);
    }
  }
}

// Brings the class indices in line with the worker's state.
void DispatchQueue::RefreshOffers(Worker* worker, absl::Duration now) {
  const WorkerState state = StateOf(*worker);
  const bool was_active = worker->counted_active;
  CountRegistered(worker, !worker->session.empty() && !worker->lost);
  CountActive(worker, !worker->session.empty() && state == WorkerState::kActive, now);
  if (state != worker->reported_state) {
    worker->reported_state = state;
    Emit(QueueAction::Kind::kWorkerChanged).worker = worker->name;
  }
  RefreshWaiting(worker);
  if (!was_active || worker->counted_active) return;
  // What the others had left to this worker is theirs now.
  for (ClassQueue* cls : worker->classes) {
    if (!cls->retry.empty()) MatchWaiting(cls->waiting, now);
  }
}

int DispatchQueue::BusySlots(const Worker& worker) const {
  int busy = 0;
  for (auto& [sequence, item] : worker.leases) busy += item->lease->orphan ? 0 : 1;
  return busy;
}

void DispatchQueue::RefreshWaiting(Worker* worker) {
  uint64_t sequence = 0;
  if (worker->counted_active && BusySlots(*worker) < worker->lease_count_max) {
    for (auto& [id, poll] : worker->polls) {
      if (!poll.granting && (sequence == 0 || poll.sequence < sequence)) sequence = poll.sequence;
    }
  }
  if (sequence == worker->waiting_sequence) return;
  for (ClassQueue* cls : worker->classes) {
    cls->waiting.erase(worker->waiting_sequence);
    if (sequence != 0) cls->waiting[sequence] = worker;
  }
  waiting_.erase(worker->waiting_sequence);
  if (sequence != 0) waiting_[sequence] = worker;
  worker->waiting_sequence = sequence;
}

// --- Matching.

// A worker on which the evaluation failed gets it again only when no other active worker could; one
// that it avoids also when the others stayed busy for too long.
bool DispatchQueue::MayRun(const Item& item, const Worker& worker, absl::Duration now) const {
  auto failed_on = [&item](const std::string& name) {
    return std::find(item.failed_on.begin(), item.failed_on.end(), name) != item.failed_on.end();
  };
  if (worker.name == item.other_than && now < item.any_worker_from) {
    for (auto& [number, other] : item.cls->offers) {
      if (other != &worker && !failed_on(other->name)) return false;
    }
  }
  if (!failed_on(worker.name)) return true;
  // At most attempts_max rounds: every further one would be a worker that has not failed.
  for (auto& [number, other] : item.cls->offers) {
    if (!failed_on(other->name)) return false;
  }
  return true;
}

DispatchQueue::Item* DispatchQueue::Best(const Worker& worker, absl::Duration now) const {
  Item* best = nullptr;
  ReadyKey best_key{};
  auto offer = [&](const ReadyKey& key, Item* item) {
    if (best != nullptr && best_key <= key) return;
    best = item;
    best_key = key;
  };
  for (const ClassQueue* cls : worker.classes) {
    if (!cls->fresh.empty()) offer(cls->fresh.begin()->first, cls->fresh.begin()->second);
    size_t scanned = 0;
    for (auto& [key, item] : cls->retry) {
      if (++scanned > limits::kRetryScanMax) break;
      if (!MayRun(*item, worker, now)) continue;
      offer(key, item);
      break;
    }
  }
  return best;
}

void DispatchQueue::Match(Worker* worker, absl::Duration now) {
  while (worker->waiting_sequence != 0 && !storage_timer_.has_value()) {
    Item* item = Best(*worker, now);
    if (item == nullptr) return;
    Grant(item, worker, now);
  }
}

void DispatchQueue::MatchWaiting(const std::map<uint64_t, Worker*>& waiting, absl::Duration now) {
  const std::map<uint64_t, Worker*> copy = waiting;  // Match changes it
  for (auto& [sequence, worker] : copy) Match(worker, now);
}

// Hands a ready item to the worker that waits longest and may run it.
void DispatchQueue::Place(Item* item, absl::Duration now) {
  if (storage_timer_.has_value()) return;
  for (auto& [sequence, worker] : item->cls->waiting) {
    if (!MayRun(*item, *worker, now)) continue;
    Grant(item, worker, now);
    return;
  }
}

void DispatchQueue::Grant(Item* item, Worker* worker, absl::Duration now) {
  auto it = std::find_if(worker->polls.begin(), worker->polls.end(), [worker](auto& entry) {
    return entry.second.sequence == worker->waiting_sequence;
  });
  Poll* poll = &it->second;
  poll->granting = true;
  ClearTimer(&poll->timer);
  EraseReady(item);
  ClearTimer(&item->timer);
  SetItemState(item, State::kGranting);
  item->fence += 1;
  item->lease = std::make_unique<LeaseState>();
  item->lease->worker = worker;
  item->lease->session = worker->session;
  item->lease->poll_id = poll->poll_id;
  worker->leases[item->sequence] = item;
  RefreshWaiting(worker);
  QueueAction& action = Emit(QueueAction::Kind::kRecordLease);
  action.evaluation = item->evaluation;
  action.worker = worker->name;
  action.fence = item->fence;
  action.attempt = item->attempts + 1;
  action.session = worker->session;
  action.poll_id = poll->poll_id;
}

// Takes the lease off its worker, whose slot is free then.
void DispatchQueue::DetachLease(Item* item, absl::Duration now) {
  Worker* worker = item->lease->worker;
  item->lease->worker = nullptr;
  worker->leases.erase(item->sequence);
  RefreshWaiting(worker);
  Match(worker, now);
}

}  // namespace assay
