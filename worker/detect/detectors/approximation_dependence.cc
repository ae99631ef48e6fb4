// Outputs that are right on this device, and wrong on one whose approximate functions err as far as
// their documentation allows. No proof of anything: real devices are mostly better than documented,
// and only a run on one tells.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "assay/internal/v1/runner.pb.h"
#include "assay/v1/evaluation.pb.h"
#include "worker/detect/detector.h"

namespace assay {
namespace {

std::string Describe(const internal::v1::ApproximationDependence& found) {
  std::string text =
      "wrong when approximate functions (__expf, __sinf, rsqrtf and the like) err within their "
      "documented bounds: ";
  const v1::Mismatch& mismatch = found.mismatch();
  if (mismatch.index().empty()) {
    absl::StrAppend(&text, mismatch.tensor(), " as a whole");
  } else {
    absl::StrAppendFormat(&text, "%s[%s] is %.9g, expected %.9g", mismatch.tensor(),
                          absl::StrJoin(mismatch.index(), ","), mismatch.got(), mismatch.want());
  }
  absl::StrAppend(&text, " (case ", found.input_case(), ", seed ", found.input_seed(),
                  "); use the exact functions, or verify on the device");
  return text;
}

class ApproximationDependenceDetector : public Detector {
 public:
  std::string_view name() const override { return "approximation_dependence"; }

  std::vector<DetectorFinding> Inspect(const Evidence& evidence) const override {
    std::vector<DetectorFinding> findings;
    for (const internal::v1::RunnerReport* report : evidence.reports) {
      for (const internal::v1::RunnerWorkloadReport& work : report->workloads()) {
        if (!work.has_approximation_dependence()) continue;
        DetectorFinding finding;
        finding.severity = v1::Finding::NOTICE;
        finding.workload = work.workload();
        finding.evidence = Describe(work.approximation_dependence());
        findings.push_back(std::move(finding));
      }
    }
    return findings;
  }
};

}  // namespace

std::unique_ptr<Detector> MakeApproximationDependenceDetector() {
  return std::make_unique<ApproximationDependenceDetector>();
}

}  // namespace assay
