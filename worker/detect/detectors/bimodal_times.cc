// Times that fall into two groups: caching, a frequency step, or another process. A notice only.
#include <algorithm>

#include "absl/strings/str_format.h"
#include "assay/v1/evaluation.pb.h"
#include "worker/detect/detector.h"

namespace assay {
namespace {

constexpr size_t kSamplesMin = 30;
constexpr double kMassMin = 0.1;       // of the smaller group
constexpr double kGapRatioMin = 0.02;  // of the median

class BimodalTimesDetector : public Detector {
 public:
  std::string_view name() const override { return "bimodal_times"; }

  std::vector<DetectorFinding> Inspect(const Evidence& evidence) const override {
    std::vector<DetectorFinding> findings;
    for (const v1::WorkloadResult* result : evidence.results) {
      for (const v1::RunnerSamples& runner : result->measurement().runners()) {
        std::vector<double> sorted(runner.warm_ns().begin(), runner.warm_ns().end());
        std::sort(sorted.begin(), sorted.end());
        const std::string what = Describe(sorted);
        if (what.empty()) continue;
        DetectorFinding finding;
        finding.severity = v1::Finding::NOTICE;
        finding.workload = result->workload();
        finding.evidence = what;
        findings.push_back(std::move(finding));
        break;  // one notice a workload
      }
    }
    return findings;
  }

 private:
  // Empty when there is one group. The largest step between neighbours, with enough samples on
  // both sides, must be 2 % of the median and at least half of the span in which it is looked for,
  // so that an even spread is not taken for two groups.
  static std::string Describe(const std::vector<double>& sorted) {
    if (sorted.size() < kSamplesMin) return "";
    const size_t edge =
        std::max<size_t>(1, static_cast<size_t>(kMassMin * static_cast<double>(sorted.size())));
    double gap = 0;
    size_t at = 0;
    for (size_t i = edge; i <= sorted.size() - edge; ++i) {
      if (sorted[i] - sorted[i - 1] > gap) {
        gap = sorted[i] - sorted[i - 1];
        at = i;
      }
    }
    const double median = sorted[sorted.size() / 2];
    const double span = sorted[sorted.size() - edge] - sorted[edge - 1];
    if (gap < kGapRatioMin * median || gap < 0.5 * span) return "";
    return absl::StrFormat("%d samples up to %.0f ns and %d from %.0f ns", at, sorted[at - 1],
                           sorted.size() - at, sorted[at]);
  }
};

}  // namespace

std::unique_ptr<Detector> MakeBimodalTimesDetector() {
  return std::make_unique<BimodalTimesDetector>();
}

}  // namespace assay
