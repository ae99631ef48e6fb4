#include "store/sqlite/writer.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/status.h"
#include "store/sqlite/wal_reserve.h"

namespace assay {
namespace {

// After this long without work the rest of the WAL goes into the database.
constexpr absl::Duration kIdle = absl::Seconds(1);

// A WAL this many times the usual size means that there never was a moment without readers; then
// the checkpoint waits for one.
constexpr int kStarvedFactor = 4;
// Writes wait meanwhile.
constexpr int kStarvedWaitMs = 500;

// A store whose WAL never held so many frames at a time gains nothing from a reserve.
constexpr int kBusyFrames = 1024;

absl::Status ShutDown() {
  return ErrorWithReason(absl::StatusCode::kUnavailable, "STORE_SHUT_DOWN",
                         "the store is shut down; the server is stopping");
}

absl::Status Overloaded() {
  return ErrorWithReason(
      absl::StatusCode::kResourceExhausted, "STORE_OVERLOADED",
      absl::StrCat("more than ", limits::kStoreQueueOperationsMax, " writes or ",
                   limits::kStoreQueueBytesMax, " bytes wait for the disk; try again later"));
}

}  // namespace

Writer::Writer(std::unique_ptr<Connection> connection, Options options)
    : options_(std::move(options)),
      connection_(std::move(connection)),
      context_{.db = *connection_, .problems = {}} {
  sqlite3_wal_hook(
      connection_->handle(),
      [](void* self, sqlite3*, const char*, int frames) {
        static_cast<Writer*>(self)->wal_frames_ = frames;
        return SQLITE_OK;
      },
      this);
  thread_ = std::thread([this] { Run(); });
}

Writer::~Writer() { Stop(); }

void Writer::Stop() {
  Shutdown();
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
    work_.Signal();
  }
  if (thread_.joinable()) thread_.join();
}

void Writer::Enqueue(std::unique_ptr<WriteOperation> operation) {
  absl::MutexLock lock(&mutex_);
  const size_t bytes = operation->bytes();
  if (shut_down_) {
    refusals_.push_back({std::move(operation), ShutDown()});
  } else if (operation->refusable() && (queue_.size() >= limits::kStoreQueueOperationsMax ||
                                        queued_bytes_ + bytes > limits::kStoreQueueBytesMax)) {
    refusals_.push_back({std::move(operation), Overloaded()});
  } else {
    queued_bytes_ += bytes;
    queue_.push_back(std::move(operation));
  }
  if (waiting_) work_.Signal();
}

void Writer::Shutdown() {
  absl::MutexLock lock(&mutex_);
  shut_down_ = true;
  while (busy_ || !queue_.empty()) drained_.Wait(&mutex_);
}

void Writer::Run() {
  for (;;) {
    Operations group;
    std::vector<Refusal> refusals;
    if (!Take(&group, &refusals)) return;
    for (Refusal& refusal : refusals) refusal.operation->Finish(refusal.status);
    if (!group.empty()) CommitGroup(group);
    const bool idle = group.empty() && refusals.empty();
    Checkpoint(idle);
    if (idle) Reserve();
    // Destroyed before Shutdown returns: callbacks may hold what their owners are about to destroy.
    group.clear();
    refusals.clear();
    absl::MutexLock lock(&mutex_);
    busy_ = false;
    if (queue_.empty()) drained_.SignalAll();
  }
}

bool Writer::Take(Operations* group, std::vector<Refusal>* refusals) {
  absl::MutexLock lock(&mutex_);
  while (queue_.empty() && refusals_.empty()) {
    if (stop_) return false;
    waiting_ = true;
    const bool idle = work_.WaitWithTimeout(&mutex_, kIdle);
    waiting_ = false;
    if (idle && wal_frames_ != checkpointed_frames_) break;
  }
  busy_ = true;
  refusals->swap(refusals_);
  size_t rows = 0;
  while (!queue_.empty() && group->size() < limits::kStoreGroupOperationsMax) {
    rows += queue_.front()->rows();
    if (!group->empty() && rows > limits::kStoreGroupRowsMax) break;
    queued_bytes_ -= queue_.front()->bytes();
    group->push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  return true;
}

void Writer::CommitGroup(Operations& group) {
  if (options_.before_group) options_.before_group(*connection_);
  std::vector<absl::Status> statuses(group.size());
  bool again = false;
  absl::Status status = TryGroup(group, Isolation::kNone, &statuses, &again);
  if (again) status = TryGroup(group, Isolation::kSavepoints, &statuses, &again);
  if (!status.ok()) {
    Log(LogLevel::kError, "store_group_failed",
        {{"operations", absl::StrCat(group.size())}, {"error", status.ToString()}});
  }
  if (status.ok() && options_.on_commit) options_.on_commit(group.size(), commit_time_);
  for (size_t i = 0; i < group.size(); ++i) {
    group[i]->Finish(status.ok() ? statuses[i] : status);
  }
}

absl::Status Writer::TryGroup(Operations& group, Isolation isolation,
                              std::vector<absl::Status>* statuses, bool* again) {
  *again = false;
  absl::Status status = connection_->Execute("BEGIN IMMEDIATE");
  for (size_t i = 0; status.ok() && i < group.size(); ++i) {
    absl::Status& own = (*statuses)[i];
    status = ApplyOne(*group[i], isolation, &own);
    if (status.ok() && !own.ok() && isolation == Isolation::kNone) {
      *again = true;
      Rollback();
      return absl::OkStatus();
    }
  }
  const absl::Duration start = options_.clock->Monotonic();
  if (status.ok()) status = connection_->Execute("COMMIT");
  commit_time_ = options_.clock->Monotonic() - start;
  if (!status.ok()) Rollback();
  return status;
}

absl::Status Writer::ApplyOne(WriteOperation& operation, Isolation isolation, absl::Status* own) {
  *own = absl::OkStatus();
  const bool savepoint = isolation == Isolation::kSavepoints;
  if (savepoint) ASSAY_RETURN_IF_ERROR(connection_->Execute("SAVEPOINT operation"));
  absl::Status status = operation.Apply(context_);
  if (!status.ok()) {
    const bool sound = connection_->in_transaction() && GetReason(status) == kStorageConstraint;
    if (!sound) return status;
    *own = std::move(status);
    if (savepoint) {
      context_.problems.clear();
      ASSAY_RETURN_IF_ERROR(connection_->Execute("ROLLBACK TO operation"));
    }
  }
  if (savepoint) ASSAY_RETURN_IF_ERROR(connection_->Execute("RELEASE operation"));
  return absl::OkStatus();
}

void Writer::Rollback() {
  context_.problems.clear();
  // After a full disk or an I/O error SQLite may have rolled back by itself.
  if (!connection_->in_transaction()) return;
  const absl::Status status = connection_->Execute("ROLLBACK");
  if (!status.ok()) Log(LogLevel::kError, "store_rollback_failed", {{"error", status.ToString()}});
}

void Writer::Checkpoint(bool idle) {
  // A WAL that started over has fewer frames than were checkpointed before.
  if (wal_frames_ < checkpointed_frames_) checkpointed_frames_ = 0;
  was_busy_ = was_busy_ || wal_frames_ >= kBusyFrames;
  const int fresh = wal_frames_ - checkpointed_frames_;
  if (fresh == 0 || (!idle && fresh < options_.checkpoint_frames)) return;
  const bool starved = wal_frames_ > kStarvedFactor * options_.checkpoint_frames;
  const int mode = starved ? SQLITE_CHECKPOINT_RESTART : SQLITE_CHECKPOINT_PASSIVE;
  if (starved) sqlite3_busy_timeout(connection_->handle(), kStarvedWaitMs);
  const int code =
      sqlite3_wal_checkpoint_v2(connection_->handle(), nullptr, mode, nullptr, nullptr);
  if (starved) sqlite3_busy_timeout(connection_->handle(), Connection::kBusyTimeoutMs);
  // Frames that a reader still needs are left for the next time.
  checkpointed_frames_ = wal_frames_;
  if (code != SQLITE_OK && code != SQLITE_BUSY) {
    Log(LogLevel::kWarning, "store_checkpoint_failed",
        {{"error", SqliteError(connection_->handle(), code, "checkpoint").ToString()}});
  }
}

void Writer::Reserve() {
  if (!options_.reserve_wal || reserved_ || !was_busy_) return;
  const auto page_bytes = connection_->QueryInt("PRAGMA page_size");
  if (!page_bytes.ok()) return;
  constexpr int64_t kFrameHeaderBytes = 24;
  const int64_t frames = int64_t{options_.checkpoint_frames} + options_.checkpoint_frames / 16;
  const absl::Status status = ReserveWal(*connection_, frames * (*page_bytes + kFrameHeaderBytes),
                                         [this] { return NothingWaits(); });
  reserved_ = !status.ok() || NothingWaits();
  if (!status.ok()) {
    Log(LogLevel::kWarning, "store_wal_not_reserved", {{"error", status.ToString()}});
  }
}

bool Writer::NothingWaits() {
  absl::MutexLock lock(&mutex_);
  return queue_.empty() && refusals_.empty() && !shut_down_ && !stop_;
}

}  // namespace assay
