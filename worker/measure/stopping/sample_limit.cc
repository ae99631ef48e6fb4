// Stops at the largest number of samples that is kept.
#include "worker/measure/stopping/stopping_rule.h"

namespace assay {
namespace {

class SampleLimitRule : public StoppingRule {
 public:
  explicit SampleLimitRule(const StoppingParameters& parameters) : parameters_(parameters) {}

  Stop Check(const SeriesSoFar& series) const override {
    return static_cast<int>(series.samples_ns.size()) >= parameters_.samples_max
               ? Stop::kSampleLimit
               : Stop::kNo;
  }

 private:
  const StoppingParameters parameters_;
};

}  // namespace

std::unique_ptr<StoppingRule> MakeSampleLimitRule(const StoppingParameters& parameters) {
  return std::make_unique<SampleLimitRule>(parameters);
}

}  // namespace assay
