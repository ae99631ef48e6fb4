#include "worker/detect/detector.h"

namespace assay {

std::vector<std::unique_ptr<Detector>> AllDetectors() {
  std::vector<std::unique_ptr<Detector>> detectors;
  // Proofs.
  detectors.push_back(MakeDeviceChecksDetector());
  detectors.push_back(MakeOrderDependenceDetector());
  detectors.push_back(MakeStaleOutputDetector());
  detectors.push_back(MakeCarriedStateDetector());
  detectors.push_back(MakeClockDependenceDetector());
  detectors.push_back(MakeHiddenWorkDetector());
  detectors.push_back(MakeFasterThanCeilingDetector());
  // Suspicions.
  detectors.push_back(MakeDerivedAnswersDetector());
  detectors.push_back(MakeDeviceTimersDetector());
  detectors.push_back(MakeIdleLaunchDetector());
  detectors.push_back(MakePrecisionDowngradeDetector());
  // Notices.
  detectors.push_back(MakeBimodalTimesDetector());
  detectors.push_back(MakeApproximationDependenceDetector());
  detectors.push_back(MakeFpEnvironmentDetector());
  detectors.push_back(MakeDeviceInstructionsDetector());
  detectors.push_back(MakePrecisionInstructionsDetector());
  detectors.push_back(MakeLibraryCallsDetector());
  detectors.push_back(MakeEmbeddedBinaryDetector());
  detectors.push_back(MakeForbiddenSourceDetector());
  detectors.push_back(MakeReviewerTextDetector());
  return detectors;
}

}  // namespace assay
