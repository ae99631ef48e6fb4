#include "worker/measure/time_conservation.h"

#include <cmath>

#include "absl/strings/str_format.h"
#include "assay/v1/evaluation.pb.h"
#include "base/status.h"

namespace assay {
namespace {

constexpr double kEmptyRatioMin = 0.5;
// What two clocks, or an event of a device and a clock, may differ over one series.
constexpr double kSlackRatio = 0.01;
constexpr double kSlackNs = 2'000;

absl::Status Impossible(const std::string& what) {
  return ErrorWithReason(absl::StatusCode::kInternal, "TIME_IMPOSSIBLE",
                         what + "; no time of this run counts");
}

}  // namespace

absl::Status CheckCallTime(double duration_ns) {
  if (std::isfinite(duration_ns) && duration_ns > 0) return absl::OkStatus();
  return Impossible(absl::StrFormat("a call took %g ns", duration_ns));
}

absl::Status CheckShortestCall(double shortest_ns, double shortest_empty_ns) {
  if (shortest_ns >= kEmptyRatioMin * shortest_empty_ns) return absl::OkStatus();
  return Impossible(absl::StrFormat("a call took %.0f ns, the shortest empty one %.0f ns",
                                    shortest_ns, shortest_empty_ns));
}

absl::Status CheckConservation(const v1::RunnerSamples& samples) {
  double sum_ns = 0;
  for (const double ns : samples.warm_ns()) sum_ns += ns;
  for (const double ns : samples.cold_ns()) sum_ns += ns;
  const double elapsed_ns = samples.elapsed_ns();
  // In this form a NaN on either side fails.
  if (elapsed_ns > 0 && sum_ns <= (1 + kSlackRatio) * elapsed_ns + kSlackNs) {
    return absl::OkStatus();
  }
  return Impossible(absl::StrFormat("%d calls took %.0f ns together, within %.0f ns",
                                    samples.warm_ns_size() + samples.cold_ns_size(), sum_ns,
                                    elapsed_ns));
}

}  // namespace assay
