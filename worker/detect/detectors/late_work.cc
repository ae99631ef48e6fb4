// A candidate that went on working after it had reported completion.
#include "absl/strings/str_cat.h"
#include "assay/internal/v1/runner.pb.h"
#include "worker/detect/detector.h"

namespace assay {
namespace {

class LateWorkDetector : public Detector {
 public:
  std::string_view name() const override { return "late_work"; }

  std::vector<DetectorFinding> Inspect(const Evidence& evidence) const override {
    std::vector<DetectorFinding> findings;
    for (const internal::v1::RunnerReport* report : evidence.reports) {
      const internal::v1::GuestFault& fault = report->candidate_fault();
      if (fault.kind() != internal::v1::GuestFault::LATE_WORK) continue;
      DetectorFinding finding;
      finding.severity = v1::Finding::PROOF;
      finding.workload = fault.workload();
      finding.evidence = fault.message();
      for (const internal::v1::RunnerWorkloadReport& work : report->workloads()) {
        // Without medians the guest ended at the late write that the fault tells of.
        if (work.workload() != fault.workload() || work.idle_ns() + work.answer_ns() == 0) continue;
        absl::StrAppend(&finding.evidence, "; median answer after ",
                        static_cast<int64_t>(work.answer_ns()), " ns, of empty calls after ",
                        static_cast<int64_t>(work.empty_answer_ns()), " ns; median sleep after ",
                        static_cast<int64_t>(work.idle_ns()), " ns, of empty calls after ",
                        static_cast<int64_t>(work.empty_idle_ns()), " ns");
      }
      finding.verdict = v1::GAMED;
      finding.reason = "LATE_WORK";
      findings.push_back(std::move(finding));
    }
    return findings;
  }
};

}  // namespace

std::unique_ptr<Detector> MakeLateWorkDetector() { return std::make_unique<LateWorkDetector>(); }

}  // namespace assay
