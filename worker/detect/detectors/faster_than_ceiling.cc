// A time below what the machine was measured to be able to do.
#include "absl/strings/str_format.h"
#include "assay/v1/evaluation.pb.h"
#include "worker/ceiling/ceiling.h"
#include "worker/detect/detector.h"

namespace assay {
namespace {

class FasterThanCeilingDetector : public Detector {
 public:
  std::string_view name() const override { return "faster_than_ceiling"; }

  std::vector<DetectorFinding> Inspect(const Evidence& evidence) const override {
    std::vector<DetectorFinding> findings;
    for (const v1::WorkloadResult* result : evidence.results) {
      if (!result->has_measurement() || !result->has_ceiling()) continue;
      const v1::Measurement& measurement = result->measurement();
      const double warm_ns = measurement.median_ns();
      const double cold_ns = measurement.cold().median_ns();
      if (result->efficiency_ratio() > kEfficiencyMax) {
        findings.push_back(Prove(*result, "", warm_ns, result->efficiency_ratio()));
      } else if (cold_ns > 0 && result->ceiling().time_ns() > kEfficiencyMax * cold_ns) {
        // Caches make nothing slower.
        findings.push_back(
            Prove(*result, " with cold caches", cold_ns, result->ceiling().time_ns() / cold_ns));
      }
    }
    return findings;
  }

 private:
  static DetectorFinding Prove(const v1::WorkloadResult& result, const char* how, double ns,
                               double efficiency) {
    DetectorFinding finding;
    finding.severity = v1::Finding::PROOF;
    finding.workload = result.workload();
    finding.evidence = absl::StrFormat(
        "%.0f ns measured%s, %.0f ns is the least possible (%s bound, %s); efficiency %.2f", ns,
        how, result.ceiling().time_ns(), v1::Ceiling::Bound_Name(result.ceiling().bound()),
        result.ceiling().basis(), efficiency);
    finding.verdict = v1::IMPLAUSIBLE;
    finding.reason = "FASTER_THAN_CEILING";
    return finding;
  }
};

}  // namespace

std::unique_ptr<Detector> MakeFasterThanCeilingDetector() {
  return std::make_unique<FasterThanCeilingDetector>();
}

}  // namespace assay
