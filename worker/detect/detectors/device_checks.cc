// What the checks of a device proved: a race, an access out of bounds, a broken barrier; and what
// the emulated one could not tell before a real one ran the candidate.
#include "absl/strings/str_cat.h"
#include "assay/internal/v1/runner.pb.h"
#include "assay/v1/evaluation.pb.h"
#include "worker/detect/detector.h"

namespace assay {
namespace {

class DeviceChecksDetector : public Detector {
 public:
  std::string_view name() const override { return "device_checks"; }

  std::vector<DetectorFinding> Inspect(const Evidence& evidence) const override {
    std::vector<DetectorFinding> findings;
    for (const internal::v1::RunnerReport* report : evidence.reports) {
      for (const std::string& note : report->preflight_notes()) {
        DetectorFinding finding;
        finding.severity = v1::Finding::NOTICE;
        finding.evidence = absl::StrCat("not checked in the emulated device, ", note);
        findings.push_back(std::move(finding));
      }
      const internal::v1::GuestFault& fault = report->candidate_fault();
      if (fault.kind() != internal::v1::GuestFault::DEVICE_FAULT || fault.check().empty()) continue;
      DetectorFinding finding;
      finding.severity = v1::Finding::PROOF;
      finding.evidence = fault.message();
      finding.workload = fault.workload();
      finding.file = fault.file();
      finding.line = fault.line();
      finding.verdict = v1::UNDEFINED_BEHAVIOR;
      finding.reason = fault.check();
      findings.push_back(std::move(finding));
    }
    return findings;
  }
};

}  // namespace

std::unique_ptr<Detector> MakeDeviceChecksDetector() {
  return std::make_unique<DeviceChecksDetector>();
}

}  // namespace assay
