// Runs the dispatcher's blocking work (reads of the store) off the threads that must not block.
#ifndef ASSAY_SERVER_DISPATCH_TASK_RUNNER_H_
#define ASSAY_SERVER_DISPATCH_TASK_RUNNER_H_

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace assay {

// Thread-safe.
class TaskRunner {
 public:
  virtual ~TaskRunner() = default;
  // Never blocks, never runs the task before it returns. After a shutdown the task is dropped.
  virtual void Run(std::function<void()> task) = 0;
};

// A fixed number of threads. Unbounded in itself: the dispatcher has at most one task for every
// open long poll and every lease, and one each for notices and resyncs, which are bounded.
class ThreadTaskRunner : public TaskRunner {
 public:
  explicit ThreadTaskRunner(int thread_count);
  ~ThreadTaskRunner() override;
  void Run(std::function<void()> task) override;
  // Drops what has not begun and joins. Idempotent; not from a task.
  void Shutdown();

 private:
  void Loop();

  absl::Mutex mutex_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace assay

#endif  // ASSAY_SERVER_DISPATCH_TASK_RUNNER_H_
