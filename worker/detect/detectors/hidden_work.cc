// A candidate that worked before the clock started, or went on after it had reported completion.
#include "absl/strings/str_cat.h"
#include "assay/internal/v1/runner.pb.h"
#include "worker/detect/detector.h"

namespace assay {
namespace {

class HiddenWorkDetector : public Detector {
 public:
  std::string_view name() const override { return "hidden_work"; }

  std::vector<DetectorFinding> Inspect(const Evidence& evidence) const override {
    std::vector<DetectorFinding> findings;
    for (const internal::v1::RunnerReport* report : evidence.reports) {
      const internal::v1::GuestFault& fault = report->candidate_fault();
      if (fault.kind() != internal::v1::GuestFault::HIDDEN_WORK) continue;
      DetectorFinding finding;
      finding.severity = v1::Finding::PROOF;
      finding.workload = fault.workload();
      finding.evidence = fault.message();
      for (const internal::v1::RunnerWorkloadReport& work : report->workloads()) {
        // Without medians the guest ended at the late write that the fault tells of.
        if (work.workload() != fault.workload() || work.empty_outside_ns() == 0) continue;
        absl::StrAppend(&finding.evidence, "; beside ", static_cast<int64_t>(work.hidden_ns()),
                        " ns, an empty call needs ", static_cast<int64_t>(work.empty_outside_ns()),
                        " ns (medians)");
      }
      finding.verdict = v1::GAMED;
      finding.reason = "HIDDEN_WORK";
      findings.push_back(std::move(finding));
    }
    return findings;
  }
};

}  // namespace

std::unique_ptr<Detector> MakeHiddenWorkDetector() {
  return std::make_unique<HiddenWorkDetector>();
}

}  // namespace assay
