// Result codes of the driver API: their names and meanings, and the ones that errors and faults of
// the engine become.
//
// Pure functions; thread-safe.
#ifndef ASSAY_EMULATOR_DRIVER_RESULTS_H_
#define ASSAY_EMULATOR_DRIVER_RESULTS_H_

#include <vector>

#include "absl/status/status.h"
#include "base/cuda/driver_abi.h"
#include "emulator/report.h"

namespace assay::emulator {

// The enumerator's name; nullptr for a number that is none.
const char* ResultName(cuda::CUresult result);
// One short sentence; nullptr for a number that is none.
const char* ResultText(cuda::CUresult result);

cuda::CUresult ResultOfStatus(const absl::Status& status);

// What a device would answer from now on after a launch that was stopped: of the first fault that
// stops one. A launch that stopped without such a fault is CUDA_ERROR_LAUNCH_FAILED.
cuda::CUresult ResultOfFaults(const std::vector<Fault>& faults);

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_DRIVER_RESULTS_H_
