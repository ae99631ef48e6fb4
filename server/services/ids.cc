#include "server/services/ids.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/random.h"

namespace assay {

std::string EvaluationIds::NextName() {
  const uint64_t now = static_cast<uint64_t>(absl::ToUnixMillis(clock_->Now())) << 16;
  uint64_t stamp;
  {
    absl::MutexLock lock(&mutex_);
    // A full counter borrows from the next millisecond.
    stamp = last_ = std::max(now, last_ + 1);
  }
  return absl::StrCat("evaluations/", absl::Hex(stamp, absl::kZeroPad16),
                      absl::Hex(SecureRandom64(), absl::kZeroPad16));
}

}  // namespace assay
