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
      if (!result->has_measurement() || result->efficiency_ratio() <= kEfficiencyMax) continue;
      DetectorFinding finding;
      finding.severity = v1::Finding::PROOF;
      finding.workload = result->workload();
      finding.evidence = absl::StrFormat(
          "%.0f ns measured, %.0f ns is the least possible (%s bound, %s); efficiency %.2f",
          result->measurement().median_ns(), result->ceiling().time_ns(),
          v1::Ceiling::Bound_Name(result->ceiling().bound()), result->ceiling().basis(),
          result->efficiency_ratio());
      finding.verdict = v1::IMPLAUSIBLE;
      finding.reason = "FASTER_THAN_CEILING";
      findings.push_back(std::move(finding));
    }
    return findings;
  }
};

}  // namespace

std::unique_ptr<Detector> MakeFasterThanCeilingDetector() {
  return std::make_unique<FasterThanCeilingDetector>();
}

}  // namespace assay
