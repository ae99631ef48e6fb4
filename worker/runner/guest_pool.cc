#include "worker/runner/guest_pool.h"

#include <algorithm>
#include <utility>

namespace assay {

GuestPool::GuestPool(GuestPoolOptions options) : options_(std::move(options)) {
  for (int i = 0; i < options_.thread_count; ++i) threads_.emplace_back([this] { Loop(); });
}

GuestPool::~GuestPool() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

void GuestPool::Loop() {
  while (true) {
    int index = 0;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &GuestPool::HasWork));
      if (stop_) return;
      ++starting_;
      index = next_index_++;
    }
    absl::StatusOr<std::unique_ptr<GuestSession>> guest = options_.start(index);
    absl::MutexLock lock(&mutex_);
    --starting_;
    ready_.push_back(std::move(guest));
  }
}

absl::StatusOr<std::unique_ptr<GuestSession>> GuestPool::Take() {
  absl::MutexLock lock(&mutex_);
  wanted_ = std::max(wanted_, 1);
  mutex_.Await(absl::Condition(this, &GuestPool::HasAnswer));
  absl::StatusOr<std::unique_ptr<GuestSession>> guest = std::move(ready_.front());
  ready_.pop_front();
  --wanted_;
  return guest;
}

void GuestPool::Prepare(int count) {
  absl::MutexLock lock(&mutex_);
  wanted_ = std::max(wanted_, count);
}

void GuestPool::Retire(std::unique_ptr<GuestSession> guest) {
  retired_.push_back(std::move(guest));
  if (retired_.size() > options_.retired_max) retired_.pop_front();
}

void GuestPool::WaitIdle() {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(this, &GuestPool::IsIdle));
}

}  // namespace assay
