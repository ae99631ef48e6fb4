// When a measurement has enough samples. One rule a file; the first that speaks decides.
//
// Immutable and thread-safe.
#ifndef ASSAY_WORKER_MEASURE_STOPPING_STOPPING_RULE_H_
#define ASSAY_WORKER_MEASURE_STOPPING_STOPPING_RULE_H_

#include <memory>
#include <span>
#include <vector>

#include "absl/time/time.h"

namespace assay {

// Values as in assay.v1.StopReason.
enum class Stop { kNo = 0, kConverged = 1, kTimeLimit = 2, kSampleLimit = 3 };

struct SeriesSoFar {
  std::span<const double> samples_ns;  // kept ones, in order
  absl::Duration elapsed;              // wall time since the first sample began
};

class StoppingRule {
 public:
  virtual ~StoppingRule() = default;
  // Stop::kNo to go on.
  virtual Stop Check(const SeriesSoFar& series) const = 0;
};

struct StoppingParameters {
  int samples_min = 30;          // before convergence and the time limit count
  double half_width_max = 0.02;  // of the 95 % interval of the median, over the median
  absl::Duration time_limit = absl::Milliseconds(300);
  int samples_max = 1000;
  // However slow the calls are, the measurement ends then with at least `samples_floor` samples.
  absl::Duration hard_time_limit = absl::Seconds(20);
  int samples_floor = 5;
};

std::unique_ptr<StoppingRule> MakeConvergedRule(const StoppingParameters& parameters);
std::unique_ptr<StoppingRule> MakeTimeLimitRule(const StoppingParameters& parameters);
std::unique_ptr<StoppingRule> MakeSampleLimitRule(const StoppingParameters& parameters);

// The list: every rule, in the order in which they are asked.
std::vector<std::unique_ptr<StoppingRule>> MakeStoppingRules(const StoppingParameters& parameters);

}  // namespace assay

#endif  // ASSAY_WORKER_MEASURE_STOPPING_STOPPING_RULE_H_
