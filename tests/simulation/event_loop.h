// Virtual time: events in order of their time, one thread, one seed. Two runs with one seed are the
// same run.
#ifndef ASSAY_TESTS_SIMULATION_EVENT_LOOP_H_
#define ASSAY_TESTS_SIMULATION_EVENT_LOOP_H_

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/random.h"

namespace assay::simulation {

class EventLoop {
 public:
  explicit EventLoop(uint64_t seed) : random_(seed) {}

  FakeClock* clock() { return &clock_; }
  Random& random() { return random_; }
  absl::Duration now() const { return now_; }
  uint64_t event_count() const { return event_count_; }

  void After(absl::Duration delay, std::function<void()> event) {
    events_.emplace(std::make_pair(now_ + delay, next_++), std::move(event));
  }
  // Uniform in [low, high).
  absl::Duration Between(absl::Duration low, absl::Duration high) {
    return low + (high - low) * random_.Uniform();
  }
  // Runs events until `end`, or until `stop` says so (asked after every event).
  void RunUntil(absl::Duration end, const std::function<bool()>& stop) {
    while (!events_.empty() && events_.begin()->first.first <= end && !stop()) {
      auto node = events_.extract(events_.begin());
      clock_.Advance(node.key().first - now_);
      now_ = node.key().first;
      ++event_count_;
      node.mapped()();
    }
  }

 private:
  FakeClock clock_;
  Random random_;
  absl::Duration now_;
  uint64_t next_ = 0;
  uint64_t event_count_ = 0;
  std::map<std::pair<absl::Duration, uint64_t>, std::function<void()>> events_;
};

}  // namespace assay::simulation

#endif  // ASSAY_TESTS_SIMULATION_EVENT_LOOP_H_
