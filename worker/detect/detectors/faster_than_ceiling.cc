// A time below what the machine was measured to be able to do. A median decides. Single samples may
// lie a little below where a busy machine was calibrated, so they are noted; one below half of the
// ceiling is suspect whatever the median is.
#include <algorithm>

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
      } else {
        AddSamples(*result, &findings);
      }
    }
    return findings;
  }

 private:
  static void AddSamples(const v1::WorkloadResult& result, std::vector<DetectorFinding>* findings) {
    // That ceiling is a median itself.
    if (result.ceiling().bound() == v1::Ceiling::LAUNCH) return;
    const double ceiling_ns = result.ceiling().time_ns();
    int count = 0;
    int below = 0;
    double least_ns = ceiling_ns;
    for (const v1::RunnerSamples& runner : result.measurement().runners()) {
      for (const auto* samples : {&runner.warm_ns(), &runner.cold_ns()}) {
        for (const double ns : *samples) {
          ++count;
          if (ceiling_ns > kEfficiencyMax * ns) ++below;
          least_ns = std::min(least_ns, ns);
        }
      }
    }
    if (below == 0) return;
    DetectorFinding finding;
    finding.severity =
        ceiling_ns > kSampleEfficiencyMax * least_ns ? v1::Finding::SUSPECT : v1::Finding::NOTICE;
    finding.workload = result.workload();
    finding.evidence = absl::StrFormat(
        "%d of %d samples lie below %.0f ns, the least possible (%s bound, %s); the fastest took "
        "%.0f ns",
        below, count, ceiling_ns, v1::Ceiling::Bound_Name(result.ceiling().bound()),
        result.ceiling().basis(), least_ns);
    findings->push_back(std::move(finding));
  }

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
