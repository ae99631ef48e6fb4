// The writer: one thread, one connection, group commit.
//
// Operations queue under a mutex; the thread takes all that wait (within limits::kStoreGroup...),
// applies them in one transaction, commits, and then finishes each. It also checkpoints the WAL
// between groups, and nobody else does; a quiet moment it uses to write the WAL ahead. Operations
// check before they write, so there is normally no savepoint; when one fails after it wrote all the
// same, the group is rolled back and applied again with a savepoint around each operation.
//
// Thread-safe, except that Shutdown must not be called from Finish.
#ifndef ASSAY_STORE_SQLITE_WRITER_H_
#define ASSAY_STORE_SQLITE_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "store/sqlite/connection.h"

namespace assay {

// What an operation works on; belongs to the writer's thread.
struct WriteContext {
  struct KnownProblem {
    int64_t id = 0;
    int64_t newest_version = 0;
  };
  Connection& db;
  // By name; emptied by every rollback.
  std::unordered_map<std::string, KnownProblem> problems;
};

class WriteOperation {
 public:
  virtual ~WriteOperation() = default;
  // Inside a transaction. OK: applied, or refused before anything was written, which the operation
  // remembers. An error is one of SQL. After a rollback it is called again, so it must not use up
  // its input.
  virtual absl::Status Apply(WriteContext& context) = 0;
  // Exactly once, on the writer's thread. OK: what Apply did is durable.
  virtual void Finish(const absl::Status& status) = 0;

  virtual size_t rows() const { return 1; }
  virtual size_t bytes() const { return 0; }
  // May be refused when too much waits.
  virtual bool refusable() const { return false; }
};

class Writer {
 public:
  struct Options {
    // Checkpoint when this many WAL frames are new: 256 MiB of 8 KiB pages, which a start after a
    // crash reads in about a second. The writer waits for a checkpoint, and one that is rare copies
    // a page that many groups touched only once.
    int checkpoint_frames = 32768;
    // Write the WAL ahead to its usual size in the first idle second of a store that is busy at
    // times.
    bool reserve_wal = false;
    Clock* clock = SystemClock();
    // Called on the writer's thread after each group that became durable: its operations, and how
    // long the commit took. Must not block.
    std::function<void(size_t operations, absl::Duration commit)> on_commit = nullptr;
    // For tests; called on the writer's thread before each transaction.
    std::function<void(Connection&)> before_group;
  };
  Writer(std::unique_ptr<Connection> connection, Options options);
  // Stops.
  ~Writer();

  void Enqueue(std::unique_ptr<WriteOperation> operation) ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until everything accepted is finished; later operations get UNAVAILABLE.
  void Shutdown() ABSL_LOCKS_EXCLUDED(mutex_);
  // Shuts down and ends the thread, after which no callback runs. Nothing may be enqueued any more.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Operations = std::vector<std::unique_ptr<WriteOperation>>;
  struct Refusal {
    std::unique_ptr<WriteOperation> operation;
    absl::Status status;
  };
  enum class Isolation { kNone, kSavepoints };

  void Run();
  // Waits for work. False: stop.
  bool Take(Operations* group, std::vector<Refusal>* refusals);
  void CommitGroup(Operations& group);
  // The status of the whole group. `statuses` gets that of each operation. `again`: nothing was
  // done because an operation failed after writing; to be repeated with savepoints.
  absl::Status TryGroup(Operations& group, Isolation isolation, std::vector<absl::Status>* statuses,
                        bool* again);
  absl::Status ApplyOne(WriteOperation& operation, Isolation isolation, absl::Status* own);
  void Rollback();
  void Checkpoint(bool idle);
  void Reserve();
  bool NothingWaits() ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  const std::unique_ptr<Connection> connection_;
  WriteContext context_;
  // Frames in the WAL after the last commit, and how many of them a checkpoint has seen. Written by
  // the hook on the writer's thread.
  int wal_frames_ = 0;
  int checkpointed_frames_ = 0;
  bool was_busy_ = false;  // the WAL once held many frames
  bool reserved_ = false;  // or not to be tried again
  absl::Duration commit_time_;

  absl::Mutex mutex_;
  absl::CondVar work_;
  absl::CondVar drained_;
  std::deque<std::unique_ptr<WriteOperation>> queue_ ABSL_GUARDED_BY(mutex_);
  std::vector<Refusal> refusals_ ABSL_GUARDED_BY(mutex_);
  size_t queued_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
  bool waiting_ ABSL_GUARDED_BY(mutex_) = false;
  bool shut_down_ ABSL_GUARDED_BY(mutex_) = false;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;
};

}  // namespace assay

#endif  // ASSAY_STORE_SQLITE_WRITER_H_
