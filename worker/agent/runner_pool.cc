#include "worker/agent/runner_pool.h"

#include <string>
#include <utility>

#include "base/log.h"

namespace assay {

RunnerPool::RunnerPool(RunnerPoolOptions options) : options_(std::move(options)) {
  thread_ = std::thread([this] { Loop(); });
}

RunnerPool::~RunnerPool() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  thread_.join();
}

int RunnerPool::NextSlot() {
  next_slot_ = next_slot_ % options_.slot_max + 1;
  return next_slot_;
}

void RunnerPool::Loop() {
  while (true) {
    int slot = 0;
    int guests = 0;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &RunnerPool::HasWork));
      if (stop_) return;
      --wanted_;
      starting_ = true;
      slot = NextSlot();
      guests = guests_;
    }
    absl::StatusOr<std::unique_ptr<RunnerClient>> runner = options_.start(slot, guests);
    absl::MutexLock lock(&mutex_);
    starting_ = false;
    if (runner.ok()) {
      ready_.push_back(*std::move(runner));
    } else {
      // Take tries again and reports its own failure.
      Log(LogLevel::kWarning, "runner_not_started_ahead",
          {{"message", std::string(runner.status().message())}});
    }
  }
}

absl::StatusOr<std::unique_ptr<RunnerClient>> RunnerPool::Take() {
  int slot = 0;
  int guests = 0;
  {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(this, &RunnerPool::HasAnswer));
    // What is wanted but not begun would start in the middle of a measurement.
    wanted_ = 0;
    if (!ready_.empty()) {
      std::unique_ptr<RunnerClient> runner = std::move(ready_.front());
      ready_.pop_front();
      return runner;
    }
    slot = NextSlot();
    guests = guests_;
  }
  return options_.start(slot, guests);
}

void RunnerPool::Refill(int guests) {
  absl::MutexLock lock(&mutex_);
  guests_ = guests;
  const int missing = options_.ready_max - static_cast<int>(ready_.size()) - (starting_ ? 1 : 0);
  wanted_ = missing > 0 ? missing : 0;
}

}  // namespace assay
