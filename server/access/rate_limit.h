// How often a caller may call: a bucket that fills with time. Pure: time comes in as an argument.
// Not thread-safe.
#ifndef ASSAY_SERVER_ACCESS_RATE_LIMIT_H_
#define ASSAY_SERVER_ACCESS_RATE_LIMIT_H_

#include <algorithm>

#include "absl/time/time.h"

namespace assay {

class RateLimit {
 public:
  // Calls a second on average, and at once; both above 0. Starts full.
  RateLimit(double per_second, double burst)
      : per_second_(per_second), burst_(burst), left_(burst) {}

  // Zero: the call may be made, and is counted as `amount`, which is at most the burst. Otherwise
  // the time until it may be; nothing is counted. `now` is monotonic; an earlier one than before
  // counts as no time.
  absl::Duration Take(absl::Duration now, double amount = 1) {
    const double seconds = absl::ToDoubleSeconds(std::max(now - seen_, absl::ZeroDuration()));
    seen_ = std::max(seen_, now);
    left_ = std::min(burst_, left_ + seconds * per_second_);
    if (left_ < amount) return absl::Seconds((amount - left_) / per_second_);
    left_ -= amount;
    return absl::ZeroDuration();
  }

 private:
  double per_second_;
  double burst_;
  double left_;
  absl::Duration seen_ = absl::ZeroDuration();
};

}  // namespace assay

#endif  // ASSAY_SERVER_ACCESS_RATE_LIMIT_H_
