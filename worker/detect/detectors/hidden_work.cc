// A candidate that worked before the clock started, or went on after it had reported completion;
// and one of which nobody can tell.
#include "absl/strings/str_cat.h"
#include "assay/internal/v1/runner.pb.h"
#include "assay/v1/evaluation.pb.h"
#include "worker/detect/detector.h"

namespace assay {
namespace {

class HiddenWorkDetector : public Detector {
 public:
  std::string_view name() const override { return "hidden_work"; }

  std::vector<DetectorFinding> Inspect(const Evidence& evidence) const override {
    std::vector<DetectorFinding> findings;
    for (const internal::v1::RunnerReport* report : evidence.reports) {
      if (report->candidate_fault().kind() == internal::v1::GuestFault::HIDDEN_WORK) {
        findings.push_back(Prove(*report));
        continue;
      }
      for (const internal::v1::RunnerWorkloadReport& work : report->workloads()) {
        if (work.samples().warm_ns().empty() || work.empty_outside_ns() != 0) continue;
        // Device code has no process that could work.
        if (work.samples().has_device()) continue;
        DetectorFinding finding;
        finding.severity = v1::Finding::SUSPECT;
        finding.workload = work.workload();
        finding.evidence =
            "the kernel could not tell what the candidate did outside of timed calls; measure on a "
            "quiet worker with two cores or more that keeps schedstat";
        findings.push_back(std::move(finding));
      }
    }
    return findings;
  }

 private:
  static DetectorFinding Prove(const internal::v1::RunnerReport& report) {
    const internal::v1::GuestFault& fault = report.candidate_fault();
    DetectorFinding finding;
    finding.severity = v1::Finding::PROOF;
    finding.workload = fault.workload();
    finding.evidence = fault.message();
    for (const internal::v1::RunnerWorkloadReport& work : report.workloads()) {
      // Without times the guest ended at the write or the answer that the fault tells of.
      if (work.workload() != fault.workload() || work.hidden_ns() == 0) continue;
      absl::StrAppend(&finding.evidence, "; beside ", static_cast<int64_t>(work.hidden_ns()),
                      " ns, an empty call needs ", static_cast<int64_t>(work.empty_outside_ns()),
                      " ns (medians)");
    }
    finding.verdict = v1::GAMED;
    finding.reason = "HIDDEN_WORK";
    return finding;
  }
};

}  // namespace

std::unique_ptr<Detector> MakeHiddenWorkDetector() {
  return std::make_unique<HiddenWorkDetector>();
}

}  // namespace assay
