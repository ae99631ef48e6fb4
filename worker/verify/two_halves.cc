#include "worker/verify/two_halves.h"

#include <sched.h>

namespace assay {

TwoHalves::~TwoHalves() {
  if (!helper_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  helper_.join();
}

void TwoHalves::Run(const std::function<void(int half)>& run) {
  if (core_ < 0) {
    run(0);
    run(1);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    waiting_ = &run;
  }
  if (!helper_.joinable()) helper_ = std::thread([this] { Help(); });
  changed_.notify_all();
  run(0);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return waiting_ == nullptr; });
}

void TwoHalves::Help() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core_, &cores);
  // Where the machine refuses, the helper shares whatever cores this process has.
  (void)sched_setaffinity(0, sizeof(cores), &cores);
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return waiting_ != nullptr || over_; });
    if (over_) return;
    const std::function<void(int half)>& run = *waiting_;
    lock.unlock();
    run(1);
    lock.lock();
    waiting_ = nullptr;
    changed_.notify_all();
  }
}

}  // namespace assay
