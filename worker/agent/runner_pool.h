// Keeps a few runners started ahead. Each is used once.
#ifndef ASSAY_WORKER_AGENT_RUNNER_POOL_H_
#define ASSAY_WORKER_AGENT_RUNNER_POOL_H_

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "worker/agent/runner_source.h"

namespace assay {

struct RunnerPoolOptions {
  // Starts one runner in the given slot, which starts `guests` guests. Called on any thread.
  std::function<absl::StatusOr<std::unique_ptr<RunnerClient>>(int slot, int guests)> start;
  int ready_max = 2;
  // Slots go round from the first to the second; without them through those of this process.
  std::optional<std::pair<int, int>> slots;
};

class RunnerPool : public RunnerSource {
 public:
  explicit RunnerPool(RunnerPoolOptions options);
  ~RunnerPool() override;

  absl::StatusOr<std::unique_ptr<RunnerClient>> Take() override;
  void Refill(int guests) override;

 private:
  absl::StatusOr<std::unique_ptr<RunnerClient>> Start(int slot, int guests);
  void Loop();
  int NextSlot() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stop_ || wanted_ > 0; }
  bool HasAnswer() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !ready_.empty() || !starting_;
  }

  const RunnerPoolOptions options_;
  const absl::StatusOr<std::pair<int, int>> slots_;  // first and last
  absl::Mutex mutex_;
  std::deque<std::unique_ptr<RunnerClient>> ready_ ABSL_GUARDED_BY(mutex_);
  int wanted_ ABSL_GUARDED_BY(mutex_) = 0;
  bool starting_ ABSL_GUARDED_BY(mutex_) = false;
  int guests_ ABSL_GUARDED_BY(mutex_) = 2;
  int next_slot_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace assay

#endif  // ASSAY_WORKER_AGENT_RUNNER_POOL_H_
