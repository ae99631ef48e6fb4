#include "base/clock.h"

#include <chrono>

#include "absl/time/clock.h"

namespace assay {
namespace {

class RealClock : public Clock {
 public:
  absl::Time Now() override { return absl::Now(); }
  absl::Duration Monotonic() override {
    return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
  }
  void SleepFor(absl::Duration duration) override { absl::SleepFor(duration); }
};

}  // namespace

Clock* SystemClock() {
  static RealClock* const clock = new RealClock;
  return clock;
}

absl::Time FakeClock::Now() {
  absl::MutexLock lock(&mutex_);
  return start_ + elapsed_;
}

absl::Duration FakeClock::Monotonic() {
  absl::MutexLock lock(&mutex_);
  return elapsed_;
}

void FakeClock::Advance(absl::Duration duration) {
  absl::MutexLock lock(&mutex_);
  elapsed_ += duration;
}

}  // namespace assay
