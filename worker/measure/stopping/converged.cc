// Stops when the median is known well enough.
#include "worker/measure/statistics.h"
#include "worker/measure/stopping/stopping_rule.h"

namespace assay {
namespace {

// The interval is computed after every so many samples: it sorts them, and a check after each one
// would also stop on the luckiest of many looks.
constexpr size_t kStride = 10;

class ConvergedRule : public StoppingRule {
 public:
  explicit ConvergedRule(const StoppingParameters& parameters) : parameters_(parameters) {}

  Stop Check(const SeriesSoFar& series) const override {
    const size_t count = series.samples_ns.size();
    if (count < static_cast<size_t>(parameters_.samples_min) || count % kStride != 0) {
      return Stop::kNo;
    }
    return MedianHalfWidthRatio(series.samples_ns) <= parameters_.half_width_max ? Stop::kConverged
                                                                                 : Stop::kNo;
  }

 private:
  const StoppingParameters parameters_;
};

}  // namespace

std::unique_ptr<StoppingRule> MakeConvergedRule(const StoppingParameters& parameters) {
  return std::make_unique<ConvergedRule>(parameters);
}

}  // namespace assay
