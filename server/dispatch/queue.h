// The dispatch queue: which evaluation goes to which worker, under which fence. A pure state
// machine: no gRPC, no SQL, no clock, no threads, no protobuf. Time comes in as arguments (of a
// monotonic clock); what the caller must do comes out of TakeActions(), and the caller (Dispatcher)
// reports the result of every write with a Commit... or Fail... call. Driven with explicit times in
// unit tests and by the seeded simulation in tests/simulation. Not thread-safe.
//
// Life of an item: ready -> granting (lease chosen, not durable yet) -> leased -> completing ->
// gone; an expired or abandoned lease goes through ending (not durable yet) to backoff and ready
// again, or to gone when it failed for good. For one item at most one write is in flight; only a
// cancellation, which the store orders, may overtake it. What the store refused because it knows
// better is resynced from the store.
//
// Everything is level-triggered: a lost message leaves a state that a timer or the next call mends.
#ifndef ASSAY_SERVER_DISPATCH_QUEUE_H_
#define ASSAY_SERVER_DISPATCH_QUEUE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace assay {

struct QueueOptions {
  // Makes the sessions of one start of the coordinator differ from those of another.
  std::string instance = "queue";
  absl::Duration lease_duration = absl::Seconds(30);
  // Renewals never extend a lease beyond this.
  absl::Duration lease_lifetime_max = absl::Minutes(20);
  // After a start, running leases wait this long for their workers to announce them.
  absl::Duration restart_grace = absl::Seconds(30);
  // A lease that its worker did not announce at registration, or whose long poll went away before
  // the answer, stands this much longer: a late or doubled message must not kill it.
  absl::Duration orphan_grace = absl::Seconds(2);
  int attempts_max = 3;
  // Wait before attempt n + 1: initial * 2^(n - 1), at most max, times a jitter in [0.5, 1).
  absl::Duration backoff_initial = absl::Seconds(1);
  absl::Duration backoff_max = absl::Seconds(30);
  // After a failed write: no grants, or no repetition of that write, for this long, doubling.
  absl::Duration storage_pause_initial = absl::Milliseconds(250);
  absl::Duration storage_pause_max = absl::Seconds(8);
  // Infrastructure failures in a row after which a worker gets no leases for a while (doubling).
  int quarantine_after = 5;
  absl::Duration quarantine_initial = absl::Minutes(1);
  absl::Duration quarantine_max = absl::Hours(1);
  // An evaluation says that nobody can run it only after this.
  absl::Duration placement_grace = absl::Seconds(5);
  // How long after its creation an item with `other_than` waits for another worker that is busy.
  absl::Duration other_worker_wait = absl::Minutes(2);
};

// An evaluation as the queue sees it.
struct QueueItem {
  std::string evaluation;
  std::string device_class;  // a kind ("cpu") or an exact class
  int priority = 0;          // higher first
  int64_t fence = 0;         // the stored one
  int attempts = 0;          // counted attempts that ended without an outcome
  absl::Duration age;        // since creation
  int attempts_max = 0;      // 0: as of the options
  std::string worker;        // of the last lease; empty: none yet
  // A worker that gets it only when no other active one offers the class, or all others stayed
  // busy for `other_worker_wait`. Empty: none.
  std::string other_than;
};

struct QueueLease {
  std::string evaluation;
  int64_t fence = 0;
};

// Why an attempt ended. An empty code: given back unused, no attempt is counted.
struct AttemptError {
  std::string code;  // canonical code by name
  std::string reason;
  std::string message;
};

struct WorkerRegistration {
  std::string worker;
  std::vector<std::string> classes;  // kinds and exact classes of its devices
  int lease_count_max = 1;
  std::vector<QueueLease> held;
};

struct WorkerSession {
  std::string session;
  std::vector<QueueLease> kept;
};

struct QueueAction {
  enum class Kind {
    kRecordLease,       // evaluation, worker, fence, attempt: then CommitGrant or FailGrant
    kRecordEnd,         // evaluation, fence, error, final: then CommitEnd or FailEnd
    kResync,            // evaluation: read it from the store, then Resynced or ResyncFailed
    kAnswerLease,       // session, poll_id, evaluation, fence, attempt
    kAnswerEmpty,       // session, poll_id, drain
    kAnswerSuperseded,  // session, poll_id
    kWaiting,           // evaluation: its waiting reason may have changed
    kWorkerChanged,     // worker: its state changed
    kWorkerForgotten,   // worker: evicted, because too many are known
  };
  Kind kind = Kind::kRecordLease;
  std::string evaluation;
  std::string worker;
  int64_t fence = 0;
  int attempt = 0;
  AttemptError error;
  bool final = false;
  std::string session;
  std::string poll_id;
  bool drain = false;
};

enum class WriteFailure {
  kStorage,   // not written (full, slow, shutting down): later again
  kConflict,  // the store refused: its state is another than ours
};

struct RenewedLease {
  absl::Duration duration;
  bool cancel = false;
  bool drain = false;
};

enum class CompleteStart {
  kRecord,    // write it, then CommitComplete or FailComplete
  kJoin,      // the same completion is being written: share its result
  kAskStore,  // not known here: the store alone can tell; no Commit
};

enum class AbandonStart {
  kEnding,  // a kRecordEnd is on its way or runs already
  kGone,    // nothing to record (the evaluation was cancelled)
};

enum class WorkerState { kActive, kDraining, kLost, kQuarantined };

struct WorkerView {
  WorkerState state = WorkerState::kLost;
  bool draining = false;
  absl::Duration last_seen;
  int active_leases = 0;
  int64_t completed = 0;                // since the start
  int64_t infrastructure_failures = 0;  // since the start
};

struct QueueCounters {
  int64_t queued = 0;
  int64_t leased = 0;
  int64_t unplaceable = 0;
  double oldest_queued_seconds = 0;
  int64_t granted_total = 0;
  int64_t expired_total = 0;
  int64_t abandoned_total = 0;
  int64_t completed_total = 0;
  int64_t fenced_total = 0;
  int64_t workers_active = 0;
};

class DispatchQueue {
 public:
  explicit DispatchQueue(const QueueOptions& options) : options_(options) {}
  DispatchQueue(const DispatchQueue&) = delete;
  DispatchQueue& operator=(const DispatchQueue&) = delete;

  // --- At the start.

  // A worker that was known before: LOST until it registers; it stays drained.
  void AddKnownWorker(const std::string& worker, bool draining);
  // A lease that was RUNNING when the store was opened; `item.attempts` does not count it.
  void Recover(const QueueItem& item, absl::Duration now);

  // --- Evaluations.

  // Known ones are left alone.
  void Enqueue(const QueueItem& item, absl::Duration now);
  // The store holds it as CANCELLED now.
  void Cancelled(const std::string& evaluation, absl::Duration now);
  // The store holds it as final. When it still waits here, what became of it is read from the
  // store; a leased one will be fenced by it.
  void Finished(const std::string& evaluation, absl::Duration now);

  // --- Workers. Errors of all: ABORTED with reason SESSION_SUPERSEDED (a newer registration of
  // this worker came) or SESSION_UNKNOWN (the coordinator restarted: register again);
  // ABORTED with reason LEASE_FENCED (the lease is gone).

  // RESOURCE_EXHAUSTED with reason TOO_MANY_WORKERS.
  absl::StatusOr<WorkerSession> Register(const WorkerRegistration& registration,
                                         absl::Duration now);
  // The answer comes as an action, perhaps at once. A repeated poll gets the same lease while it
  // stands. RESOURCE_EXHAUSTED with reason TOO_MANY_POLLS.
  absl::Status Acquire(const std::string& session, const std::string& poll_id, absl::Duration wait,
                       absl::Duration now);
  void ForgetPoll(const std::string& session, const std::string& poll_id, absl::Duration now);
  absl::StatusOr<RenewedLease> Renew(const std::string& session, const QueueLease& lease,
                                     absl::Duration now);
  absl::StatusOr<CompleteStart> Complete(const std::string& session, const QueueLease& lease,
                                         absl::Duration now);
  absl::StatusOr<AbandonStart> Abandon(const std::string& session, const QueueLease& lease,
                                       const AttemptError& error, absl::Duration now);
  // The lease was handed to a caller: that another caller of the same poll goes away means nothing.
  void MarkAnswered(const QueueLease& lease);
  // A granted lease could not be handed over because its work could not be read. The worker is not
  // blamed. False when the lease stays: it is gone already, or a caller was told of it before and
  // may be at work.
  bool FailDelivery(const QueueLease& lease, const AttemptError& error, absl::Duration now);
  // NOT_FOUND with reason WORKER_NOT_FOUND. Undraining also ends a quarantine.
  absl::Status SetDraining(const std::string& worker, bool draining, absl::Duration now);

  // --- Results of writes; late or doubled ones are ignored.

  void CommitGrant(const QueueLease& lease, absl::Duration now);
  void FailGrant(const QueueLease& lease, WriteFailure failure, absl::Duration now);
  void CommitComplete(const QueueLease& lease, absl::Duration now);
  void FailComplete(const QueueLease& lease, WriteFailure failure, absl::Duration now);
  void CommitEnd(const QueueLease& lease, absl::Duration now);
  void FailEnd(const QueueLease& lease, WriteFailure failure, absl::Duration now);
  // nullopt: final or absent in the store. `running`: with `fence`, which nobody here holds.
  struct StoredState {
    bool running = false;
    int64_t fence = 0;
    int attempts = 0;  // ended ones
  };
  void Resynced(const std::string& evaluation, std::optional<StoredState> stored,
                absl::Duration now);
  void ResyncFailed(const std::string& evaluation, absl::Duration now);

  // --- Time.

  // Handles every timer that is due.
  void Tick(absl::Duration now);

  // --- What the caller must do, in order. Empties the list.
  std::vector<QueueAction> TakeActions() { return std::exchange(actions_, {}); }

  // --- Views.
  size_t size() const { return items_.size(); }
  bool Contains(const std::string& evaluation) const { return items_.count(evaluation) != 0; }
  // Empty when it does not wait for want of a worker, or not for long.
  std::string WaitingReason(const std::string& evaluation, absl::Duration now) const;
  // How long the lease still stands; zero when it is gone.
  absl::Duration Remaining(const QueueLease& lease, absl::Duration now) const;
  // Resource name of the session's worker, or the session's error.
  absl::StatusOr<std::string> SessionWorker(const std::string& session) const;
  std::optional<WorkerView> ViewWorker(const std::string& worker) const;
  QueueCounters Counters(absl::Duration now) const;

 private:
  struct Item;
  struct Worker;
  struct Poll;

  // Ready items in the order in which they are granted: priority, then age.
  using ReadyKey = std::pair<int, uint64_t>;  // (-priority, sequence)
  using ReadySet = std::map<ReadyKey, Item*>;

  // Everything about one requested device class.
  struct ClassQueue {
    std::string name;
    ReadySet fresh;                       // never failed anywhere
    ReadySet retry;                       // not every worker may run it
    int64_t queued_count = 0;             // ready and in backoff
    int64_t item_count = 0;               // that refer to this class
    int worker_count = 0;                 // workers that refer to this class
    int registered_count = 0;             // of them, those with a live session
    std::map<uint64_t, Worker*> offers;   // active ones, by number
    std::map<uint64_t, Worker*> waiting;  // with an open poll and a free slot, by poll
    absl::Duration unoffered_since;       // while `offers` is empty
  };

  enum class State {
    kReady,
    kBackoff,
    kGranting,
    kLeased,
    kCompleting,
    kEnding,
    kResyncing,
    kCancelledLease,  // gone in the store; kept to tell its worker
  };

  enum class TimerKind {
    kItemBackoff,
    kItemExpiry,
    kItemEndAgain,
    kItemResyncAgain,
    kItemAnyWorker,
    kPoll,
    kWorkerLost,
    kWorkerQuarantine,
    kStorageResume,
  };
  using TimerKey = std::tuple<absl::Duration, TimerKind, uint64_t>;

  struct LeaseState {
    Worker* worker = nullptr;
    std::string session;  // while granting: who asked
    std::string poll_id;
    absl::Duration granted;
    bool answered = false;   // a caller was told of it
    bool orphan = false;     // not announced or not asked for any more: ends soon
    bool unclaimed = false;  // its poll went away before the answer: its end does not count
    bool recovered = false;  // from before the start and not announced yet
    // While ending.
    AttemptError error;
    bool final = false;
  };

  struct Item {
    std::string evaluation;
    ClassQueue* cls = nullptr;
    int priority = 0;
    uint64_t sequence = 0;
    absl::Duration created;
    State state = State::kReady;
    int attempts = 0;  // counted ends
    int attempts_max = 0;
    int returns = 0;         // uncounted ends
    int write_failures = 0;  // of the current write
    int64_t fence = 0;
    bool cancelled = false;  // while a write is in flight
    std::vector<std::string> failed_on;
    std::string other_than;
    absl::Duration any_worker_from;     // then `other_than` may run it too
    std::unique_ptr<LeaseState> lease;  // granting, leased, completing, ending, cancelled
    std::optional<TimerKey> timer;
  };

  struct Poll {
    uint64_t sequence = 0;
    Worker* worker = nullptr;
    std::string poll_id;
    absl::Duration deadline;
    bool granting = false;
    std::optional<TimerKey> timer;
  };

  struct Worker {
    std::string name;
    uint64_t number = 0;
    std::string session;
    std::vector<ClassQueue*> classes;
    int lease_count_max = 1;
    std::map<std::string, Poll> polls;
    std::map<uint64_t, Item*> leases;  // by sequence: granting, leased, completing, cancelled
    absl::Duration last_seen;
    bool lost = true;
    bool draining = false;
    bool quarantined = false;
    // What the class indices hold at present.
    bool counted_registered = false;
    bool counted_active = false;
    WorkerState reported_state = WorkerState::kLost;
    uint64_t waiting_sequence = 0;  // 0: not in `waiting`
    int failures_in_row = 0;
    int quarantine_count = 0;  // since the last completion
    int64_t completed = 0;
    int64_t infrastructure_failures = 0;
    std::optional<TimerKey> lost_timer;
    std::optional<TimerKey> quarantine_timer;
  };

  struct TimerTarget {
    Item* item = nullptr;
    Worker* worker = nullptr;
    Poll* poll = nullptr;
  };

  // Timers.
  void SetTimer(std::optional<TimerKey>* slot, absl::Duration due, TimerKind kind, uint64_t id,
                TimerTarget target);
  void ClearTimer(std::optional<TimerKey>* slot);
  void Fire(TimerKind kind, TimerTarget target, absl::Duration now);

  // Items.
  Item* Find(const std::string& evaluation) const;
  Item* AddItem(const QueueItem& item, absl::Duration now);
  void Remove(Item* item, absl::Duration now);
  void MakeReady(Item* item, absl::Duration now);
  void SetItemState(Item* item, State state);
  void EraseReady(Item* item);
  enum class Blame { kNone, kAvoid, kFull };  // kAvoid: another worker next; kFull: and count it
  void EndLease(Item* item, const AttemptError& error, Blame blame, absl::Duration now);
  void Expire(Item* item, absl::Duration now);
  void EmitEnd(const Item& item);
  void Resync(Item* item, absl::Duration now);
  absl::Duration Backoff(const Item& item) const;
  void ExtendLease(Item* item, absl::Duration now);
  // The item when `worker` holds this very lease in one of the standing states, else nullptr.
  Item* FindLease(const QueueLease& lease, const Worker* worker) const;
  absl::Status Fenced(const QueueLease& lease);

  // Workers and matching.
  absl::StatusOr<Worker*> FindSession(const std::string& session) const;
  Worker* AddWorker(const std::string& name);
  absl::Status MakeRoomForWorker();
  void Touch(Worker* worker, absl::Duration now);
  void ArmLost(Worker* worker);
  void TakeOverLeases(Worker* worker, const std::vector<QueueLease>& held, absl::Duration now,
                      std::vector<QueueLease>* kept);
  void Orphan(Item* item, absl::Duration now);
  WorkerState StateOf(const Worker& worker) const;
  int BusySlots(const Worker& worker) const;
  void RefreshOffers(Worker* worker, absl::Duration now);
  void CountRegistered(Worker* worker, bool registered);
  void CountActive(Worker* worker, bool active, absl::Duration now);
  void MatchWaiting(const std::map<uint64_t, Worker*>& waiting, absl::Duration now);
  void RefreshWaiting(Worker* worker);
  void SetClasses(Worker* worker, const std::vector<std::string>& names, absl::Duration now);
  void DetachLease(Item* item, absl::Duration now);
  void BlameWorker(Worker* worker, absl::Duration now);
  bool MayRun(const Item& item, const Worker& worker, absl::Duration now) const;
  Item* Best(const Worker& worker, absl::Duration now) const;
  void Match(Worker* worker, absl::Duration now);
  void Place(Item* item, absl::Duration now);
  void Grant(Item* item, Worker* worker, absl::Duration now);
  Poll* OpenPoll(Worker* worker, const std::string& poll_id, bool granting,
                 absl::Duration deadline);
  void ReopenPoll(Item* item);
  void ClosePoll(Poll* poll, QueueAction::Kind kind, absl::Duration now);
  void PauseGrants(absl::Duration now);
  void StorageWorks() { storage_failures_ = 0; }
  ClassQueue* GetClass(const std::string& name, absl::Duration now);
  void DropClassIfUnused(ClassQueue* cls);
  void NoteWaiting(ClassQueue* cls, absl::Duration due);
  QueueAction& Emit(QueueAction::Kind kind);

  const QueueOptions options_;
  uint64_t next_sequence_ = 1;  // items and polls
  uint64_t next_number_ = 1;    // workers and sessions
  absl::flat_hash_map<std::string, std::unique_ptr<Item>> items_;
  std::map<std::string, ClassQueue> classes_;
  std::map<std::string, std::unique_ptr<Worker>> workers_;
  absl::flat_hash_map<std::string, Worker*> sessions_;
  std::map<uint64_t, Worker*> waiting_;                          // by oldest open poll
  std::set<std::pair<absl::Duration, uint64_t>> queued_by_age_;  // ready and in backoff
  std::set<std::string> registered_classes_;
  std::map<TimerKey, TimerTarget> timers_;
  std::multimap<absl::Duration, std::string> waiting_notes_;  // bounded, see NoteWaiting
  std::optional<TimerKey> storage_timer_;
  int storage_failures_ = 0;  // in a row
  int64_t leased_count_ = 0;
  int64_t unplaceable_count_ = 0;
  int64_t active_count_ = 0;
  QueueCounters totals_;
  std::vector<QueueAction> actions_;
};

}  // namespace assay

#endif  // ASSAY_SERVER_DISPATCH_QUEUE_H_
