// Starts guests ahead on its own threads, so that sandbox starts overlap with other work.
//
// The threads live as long as the pool: a sandbox asks to die with the thread that started it, so a
// guest must not outlive them.
#ifndef ASSAY_WORKER_RUNNER_GUEST_POOL_H_
#define ASSAY_WORKER_RUNNER_GUEST_POOL_H_

#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "worker/runner/guest_source.h"

namespace assay {

struct GuestPoolOptions {
  // Makes one guest; `index` counts up from 0 and tells live guests apart. Called on the pool's
  // threads.
  std::function<absl::StatusOr<std::unique_ptr<GuestSession>>(int index)> start;
  int thread_count = 2;
  // Guests that sleep on after they were retired; the oldest are ended beyond it.
  size_t retired_max = 12;
};

class GuestPool : public GuestSource {
 public:
  explicit GuestPool(GuestPoolOptions options);
  // Ends the guests that were not taken. Those that were must be gone.
  ~GuestPool() override;

  absl::StatusOr<std::unique_ptr<GuestSession>> Take() override;
  void Prepare(int count) override;
  void Retire(std::unique_ptr<GuestSession> guest) override;
  void WaitIdle() override;

 private:
  void Loop();
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stop_ || static_cast<int>(ready_.size()) + starting_ < wanted_;
  }
  bool HasAnswer() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !ready_.empty(); }
  bool IsIdle() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return starting_ == 0 && static_cast<int>(ready_.size()) >= wanted_;
  }

  const GuestPoolOptions options_;
  absl::Mutex mutex_;
  std::deque<absl::StatusOr<std::unique_ptr<GuestSession>>> ready_ ABSL_GUARDED_BY(mutex_);
  int wanted_ ABSL_GUARDED_BY(mutex_) = 0;  // how many shall be ready
  int starting_ ABSL_GUARDED_BY(mutex_) = 0;
  int next_index_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<std::unique_ptr<GuestSession>> retired_;  // of the taking thread alone
  std::vector<std::thread> threads_;
};

}  // namespace assay

#endif  // ASSAY_WORKER_RUNNER_GUEST_POOL_H_
