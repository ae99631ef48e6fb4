// Detectors look at evidence and report findings. Pure: the same evidence gives the same findings.
#ifndef ASSAY_WORKER_DETECT_DETECTOR_H_
#define ASSAY_WORKER_DETECT_DETECTOR_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

namespace v1 {
class Candidate;
class Problem;
class WorkloadResult;
}  // namespace v1
namespace internal::v1 {
class RunnerReport;
}

// What there is to look at. The pointers outlive the call.
struct Evidence {
  const v1::Candidate* candidate = nullptr;
  // Under the contract that the candidate is held to; null: not known. Without files.
  const v1::Problem* problem = nullptr;
  // What was built: of a device-tier candidate its PTX, of a host-tier one its shared object.
  // Empty: nothing was built, or the artifact cannot be read.
  std::string_view ptx;
  std::string_view shared_object;
  std::vector<const internal::v1::RunnerReport*> reports;  // of the candidate's runners, in order
  std::vector<const v1::WorkloadResult*> results;          // with measurement and ceiling
};

struct DetectorFinding {
  int severity = 1;  // values of assay.v1.Finding.Severity
  std::string evidence;
  std::string workload;
  std::string file;
  int line = 0;
  // For a PROOF: values of assay.v1.Verdict, and the reason.
  int verdict = 0;
  std::string reason;
};

// Immutable and thread-safe.
class Detector {
 public:
  virtual ~Detector() = default;
  virtual std::string_view name() const = 0;
  virtual std::vector<DetectorFinding> Inspect(const Evidence& evidence) const = 0;
};

std::unique_ptr<Detector> MakeStaleOutputDetector();
std::unique_ptr<Detector> MakeHiddenWorkDetector();
std::unique_ptr<Detector> MakeDerivedAnswersDetector();
std::unique_ptr<Detector> MakeFasterThanCeilingDetector();
std::unique_ptr<Detector> MakeBimodalTimesDetector();
std::unique_ptr<Detector> MakeForbiddenSourceDetector();
std::unique_ptr<Detector> MakeDeviceChecksDetector();
std::unique_ptr<Detector> MakeDeviceTimersDetector();
std::unique_ptr<Detector> MakeOrderDependenceDetector();
std::unique_ptr<Detector> MakeApproximationDependenceDetector();
std::unique_ptr<Detector> MakeCarriedStateDetector();
std::unique_ptr<Detector> MakeClockDependenceDetector();
std::unique_ptr<Detector> MakeIdleLaunchDetector();
std::unique_ptr<Detector> MakePrecisionDowngradeDetector();
std::unique_ptr<Detector> MakeDeviceInstructionsDetector();
std::unique_ptr<Detector> MakePrecisionInstructionsDetector();
std::unique_ptr<Detector> MakeLibraryCallsDetector();
std::unique_ptr<Detector> MakeEmbeddedBinaryDetector();
std::unique_ptr<Detector> MakeFpEnvironmentDetector();
std::unique_ptr<Detector> MakeReviewerTextDetector();

// The list: every detector. The first proof in this order decides the verdict: first what proves
// outputs or accesses wrong, then what proves gaming, then what is only implausible; after them
// detectors that suspect, and at the end those that only note. A scan of text, source or built code
// is a tripwire: it notes, and never condemns or suspects.
std::vector<std::unique_ptr<Detector>> AllDetectors();

}  // namespace assay

#endif  // ASSAY_WORKER_DETECT_DETECTOR_H_
