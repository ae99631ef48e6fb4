// Time behind an interface, so that tests move it by hand and never sleep.
#ifndef ASSAY_BASE_CLOCK_H_
#define ASSAY_BASE_CLOCK_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace assay {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // Wall time, for timestamps that people and databases read.
  virtual absl::Time Now() = 0;
  // Time since an arbitrary start that never goes back, for leases and deadlines.
  virtual absl::Duration Monotonic() = 0;
  // Blocks the calling thread. Never called by a gRPC handler.
  virtual void SleepFor(absl::Duration duration) = 0;
};

// The machine's clocks. Lives as long as the process.
Clock* SystemClock();

// Stands still until Advance. SleepFor advances it.
class FakeClock : public Clock {
 public:
  explicit FakeClock(absl::Time start = absl::FromUnixSeconds(1'700'000'000)) : start_(start) {}
  absl::Time Now() override;
  absl::Duration Monotonic() override;
  void SleepFor(absl::Duration duration) override { Advance(duration); }
  void Advance(absl::Duration duration);

 private:
  const absl::Time start_;
  absl::Mutex mutex_;
  absl::Duration elapsed_ ABSL_GUARDED_BY(mutex_) = absl::ZeroDuration();
};

}  // namespace assay

#endif  // ASSAY_BASE_CLOCK_H_
