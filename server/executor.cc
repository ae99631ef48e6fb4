#include "server/executor.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace assay {

Executor::Executor(int thread_count, size_t queue_max) : queue_max_(queue_max) {
  for (int i = 0; i < thread_count; ++i) threads_.emplace_back([this] { Run(); });
}

Executor::~Executor() { Shutdown(); }

absl::Status Executor::Submit(std::function<void()> task) {
  absl::MutexLock lock(&mutex_);
  if (stopping_) {
    return ErrorWithReason(absl::StatusCode::kUnavailable, "SHUTTING_DOWN",
                           "the server is shutting down; retry against another or later");
  }
  if (queue_.size() >= queue_max_) {
    ++rejected_total_;
    return ErrorWithReason(
        absl::StatusCode::kResourceExhausted, "OVERLOADED",
        absl::StrCat(queue_max_, " calls wait already; retry with exponential back-off"));
  }
  queue_.push_back(std::move(task));
  return absl::OkStatus();
}

void Executor::Shutdown() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

size_t Executor::queued() const {
  absl::MutexLock lock(&mutex_);
  return queue_.size();
}

int64_t Executor::rejected_total() const {
  absl::MutexLock lock(&mutex_);
  return rejected_total_;
}

void Executor::Run() {
  const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !queue_.empty();
  };
  while (true) {
    std::function<void()> task;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&ready));
      if (queue_.empty()) return;
      task = std::move(queue_.front());
      queue_.pop_front();
    }
    task();
  }
}

absl::Status WriteBudget::Acquire(size_t count, size_t bytes) {
  absl::MutexLock lock(&mutex_);
  // One write is always let in, however large, so that no size is refused for ever.
  if (count_ > 0 && (count_ + count > count_max_ || bytes_ + bytes > bytes_max_)) {
    return ErrorWithReason(
        absl::StatusCode::kResourceExhausted, "OVERLOADED",
        absl::StrCat(count_, " writes with ", bytes_,
                     " bytes wait for storage; retry with exponential back-off"));
  }
  count_ += count;
  bytes_ += bytes;
  return absl::OkStatus();
}

void WriteBudget::Release(size_t count, size_t bytes) {
  absl::MutexLock lock(&mutex_);
  count_ -= count;
  bytes_ -= bytes;
}

size_t WriteBudget::in_flight() const {
  absl::MutexLock lock(&mutex_);
  return count_;
}

}  // namespace assay
