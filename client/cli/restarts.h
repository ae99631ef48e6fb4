// How often `assay up` starts a worker anew before it gives up.
#ifndef ASSAY_CLIENT_CLI_RESTARTS_H_
#define ASSAY_CLIENT_CLI_RESTARTS_H_

#include <deque>

#include "absl/time/time.h"

namespace assay {

inline constexpr size_t kRestartsMax = 5;
inline constexpr absl::Duration kRestartWindow = absl::Minutes(10);

// At most kRestartsMax restarts within kRestartWindow, over any length of life. Not thread-safe.
class RestartBudget {
 public:
  // Counts a restart; false when it is one too many. `now` never goes back.
  bool Take(absl::Duration now) {
    while (!times_.empty() && now - times_.front() >= kRestartWindow) times_.pop_front();
    if (times_.size() >= kRestartsMax) return false;
    times_.push_back(now);
    return true;
  }

 private:
  std::deque<absl::Duration> times_;
};

}  // namespace assay

#endif  // ASSAY_CLIENT_CLI_RESTARTS_H_
