#include "worker/detect/detector.h"

namespace assay {

std::vector<std::unique_ptr<Detector>> AllDetectors() {
  std::vector<std::unique_ptr<Detector>> detectors;
  detectors.push_back(MakeStaleOutputDetector());
  detectors.push_back(MakeHiddenWorkDetector());
  detectors.push_back(MakeDerivedAnswersDetector());
  detectors.push_back(MakeFasterThanCeilingDetector());
  detectors.push_back(MakeBimodalTimesDetector());
  detectors.push_back(MakeForbiddenSourceDetector());
  detectors.push_back(MakeDeviceChecksDetector());
  detectors.push_back(MakeDeviceTimersDetector());
  detectors.push_back(MakeOrderDependenceDetector());
  detectors.push_back(MakeApproximationDependenceDetector());
  detectors.push_back(MakeCarriedStateDetector());
  detectors.push_back(MakeClockDependenceDetector());
  detectors.push_back(MakeIdleLaunchDetector());
  detectors.push_back(MakePrecisionDowngradeDetector());
  return detectors;
}

}  // namespace assay
