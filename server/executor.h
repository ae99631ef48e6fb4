// A small pool of threads for work that blocks (reads of the store, large admissions), so that RPC
// threads never do. Thread-safe. The queue is bounded: what does not fit is refused, not delayed.
#ifndef ASSAY_SERVER_EXECUTOR_H_
#define ASSAY_SERVER_EXECUTOR_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace assay {

class Executor {
 public:
  Executor(int thread_count, size_t queue_max);
  // Runs what is queued, then joins.
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Never blocks. RESOURCE_EXHAUSTED with reason OVERLOADED when the queue is full; UNAVAILABLE
  // with reason SHUTTING_DOWN after Shutdown. A refused task was not run and will not be.
  absl::Status Submit(std::function<void()> task);

  // Refuses further tasks, runs the queued ones and joins. Idempotent; not from a task.
  void Shutdown();

  size_t queued() const;
  int64_t rejected_total() const;

 private:
  void Run();

  const size_t queue_max_;
  mutable absl::Mutex mutex_;
  std::deque<std::function<void()>> queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t rejected_total_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::thread> threads_;
};

// Bounds what was accepted but is not durable yet, so that a slow disk pushes back instead of
// filling the memory. Thread-safe.
class WriteBudget {
 public:
  WriteBudget(size_t count_max, size_t bytes_max) : count_max_(count_max), bytes_max_(bytes_max) {}
  // RESOURCE_EXHAUSTED with reason OVERLOADED. Every success is paired with one Release.
  absl::Status Acquire(size_t count, size_t bytes);
  void Release(size_t count, size_t bytes);
  size_t in_flight() const;

 private:
  const size_t count_max_;
  const size_t bytes_max_;
  mutable absl::Mutex mutex_;
  size_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace assay

#endif  // ASSAY_SERVER_EXECUTOR_H_
