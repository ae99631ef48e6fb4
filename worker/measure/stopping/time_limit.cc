// Stops when the time is up, though not before there are enough samples for a median.
#include "worker/measure/stopping/stopping_rule.h"

namespace assay {
namespace {

class TimeLimitRule : public StoppingRule {
 public:
  explicit TimeLimitRule(const StoppingParameters& parameters) : parameters_(parameters) {}

  Stop Check(const SeriesSoFar& series) const override {
    const int count = static_cast<int>(series.samples_ns.size());
    const bool soft = count >= parameters_.samples_min && series.elapsed >= parameters_.time_limit;
    const bool hard =
        count >= parameters_.samples_floor && series.elapsed >= parameters_.hard_time_limit;
    return soft || hard ? Stop::kTimeLimit : Stop::kNo;
  }

 private:
  const StoppingParameters parameters_;
};

}  // namespace

std::unique_ptr<StoppingRule> MakeTimeLimitRule(const StoppingParameters& parameters) {
  return std::make_unique<TimeLimitRule>(parameters);
}

}  // namespace assay
