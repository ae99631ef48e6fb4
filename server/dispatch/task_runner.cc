#include "server/dispatch/task_runner.h"

#include <utility>

namespace assay {

ThreadTaskRunner::ThreadTaskRunner(int thread_count) {
  for (int i = 0; i < thread_count; ++i) threads_.emplace_back([this] { Loop(); });
}

ThreadTaskRunner::~ThreadTaskRunner() { Shutdown(); }

void ThreadTaskRunner::Run(std::function<void()> task) {
  absl::MutexLock lock(&mutex_);
  if (!stopping_) tasks_.push_back(std::move(task));
}

void ThreadTaskRunner::Shutdown() {
  std::deque<std::function<void()>> dropped;  // destroyed without the lock
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    dropped.swap(tasks_);
  }
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void ThreadTaskRunner::Loop() {
  while (true) {
    std::function<void()> task;
    {
      absl::MutexLock lock(&mutex_);
      auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stopping_ || !tasks_.empty();
      };
      mutex_.Await(absl::Condition(&ready));
      if (stopping_) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace assay
