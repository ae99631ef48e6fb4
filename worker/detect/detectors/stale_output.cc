// A timed call that answered with the result of an earlier call: the candidate replays instead of
// computing.
#include "absl/strings/str_cat.h"
#include "assay/internal/v1/runner.pb.h"
#include "assay/v1/evaluation.pb.h"
#include "worker/detect/detector.h"

namespace assay {
namespace {

class StaleOutputDetector : public Detector {
 public:
  std::string_view name() const override { return "stale_output"; }

  std::vector<DetectorFinding> Inspect(const Evidence& evidence) const override {
    std::vector<DetectorFinding> findings;
    for (const internal::v1::RunnerReport* report : evidence.reports) {
      for (const internal::v1::RunnerWorkloadReport& work : report->workloads()) {
        if (work.stale_source().empty()) continue;
        DetectorFinding finding;
        finding.severity = v1::Finding::PROOF;
        finding.workload = work.workload();
        finding.evidence =
            absl::StrCat(work.verification().failed_case(),
                         " had fresh inputs; its output was the answer to ", work.stale_source());
        finding.verdict = v1::GAMED;
        finding.reason = "STALE_OUTPUT";
        findings.push_back(std::move(finding));
      }
    }
    return findings;
  }
};

}  // namespace

std::unique_ptr<Detector> MakeStaleOutputDetector() {
  return std::make_unique<StaleOutputDetector>();
}

}  // namespace assay
