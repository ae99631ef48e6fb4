#include "worker/agent/runner_pool.h"

#include <string>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "worker/sandbox/slots.h"

namespace assay {
namespace {

absl::StatusOr<std::pair<int, int>> ChooseSlots(const RunnerPoolOptions& options) {
  if (options.slots.has_value()) return *options.slots;
  ASSAY_ASSIGN_OR_RETURN(const SlotShare slots, ProcessSlots());
  return std::pair(slots.runner_first, slots.runner_last);
}

}  // namespace

RunnerPool::RunnerPool(RunnerPoolOptions options)
    : options_(std::move(options)), slots_(ChooseSlots(options_)) {
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
  if (!slots_.ok()) return 0;
  const auto [first, last] = *slots_;
  next_slot_ = next_slot_ < first || next_slot_ >= last ? first : next_slot_ + 1;
  return next_slot_;
}

absl::StatusOr<std::unique_ptr<RunnerClient>> RunnerPool::Start(int slot, int guests) {
  if (!slots_.ok()) return slots_.status();
  return options_.start(slot, guests);
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
    absl::StatusOr<std::unique_ptr<RunnerClient>> runner = Start(slot, guests);
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
  return Start(slot, guests);
}

void RunnerPool::Refill(int guests) {
  absl::MutexLock lock(&mutex_);
  guests_ = guests;
  const int missing = options_.ready_max - static_cast<int>(ready_.size()) - (starting_ ? 1 : 0);
  wanted_ = missing > 0 ? missing : 0;
}

}  // namespace assay
