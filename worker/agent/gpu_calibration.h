// The ceilings of a GPU, which a program of its own measures: a worker's daemon has no context on a
// device.
#ifndef ASSAY_WORKER_AGENT_GPU_CALIBRATION_H_
#define ASSAY_WORKER_AGENT_GPU_CALIBRATION_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace assay {

namespace v1 {
class Calibration;
}

struct GpuCalibrationOptions {
  std::string program;  // assay-gpu-ceilings
  std::string driver;   // path or soname
  int ordinal = 0;
  absl::Duration timeout = absl::Minutes(3);
};

// Runs the program, which writes to this process's standard error. Blocks for tens of seconds; the
// device must be otherwise idle. UNAVAILABLE when it fails, writes no calibration or has not ended
// at the limit, at which it is killed.
absl::Status MeasureGpuCeilings(const GpuCalibrationOptions& options, v1::Calibration* calibration);

}  // namespace assay

#endif  // ASSAY_WORKER_AGENT_GPU_CALIBRATION_H_
