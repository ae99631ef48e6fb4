// Measures this machine's ceilings, and keeps them in the worker's state folder.
#ifndef ASSAY_WORKER_CEILING_CALIBRATE_H_
#define ASSAY_WORKER_CEILING_CALIBRATE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "worker/measure/machine.h"

namespace assay {

namespace v1 {
class Calibration;
}

// Changes whenever the microbenchmarks or their counting do.
inline constexpr std::string_view kCalibrationMethod = "assay-microbench-v1";
inline constexpr std::string_view kGpuCalibrationMethod = "assay-gpu-microbench-v1";

struct CalibrateOptions {
  MachineFacts machine;
  // Time for one point; the best of several runs within it counts.
  absl::Duration point_time = absl::Milliseconds(20);
  bool all_cores = true;
  // Largest footprint of a stream.
  int64_t footprint_bytes_max = int64_t{1} << 30;
};

// Runs the microbenchmarks, pinned. Blocks for some seconds; the machine must be otherwise idle.
absl::Status Calibrate(const CalibrateOptions& options, v1::Calibration* calibration);

// Per kernel, cores and footprint the higher rate of the two, and the shorter launches: noise only
// ever slows a microbenchmark down. Renames the result.
void MergeCalibration(const v1::Calibration& other, v1::Calibration* calibration);

// By a digest of method, time and points.
void NameCalibration(v1::Calibration* calibration);

// Names the file by processor, microcode, kernel and method, so that a change of any of them
// measures anew.
std::string CalibrationPath(const std::string& state_directory, const MachineFacts& machine,
                            bool quick);
// The same for a GPU, by card, driver and method.
std::string GpuCalibrationPath(const std::string& state_directory, std::string_view uuid,
                               int driver_version);

// NOT_FOUND when there is none or it does not parse.
absl::Status LoadCalibration(const std::string& path, v1::Calibration* calibration);
absl::Status SaveCalibration(const std::string& path, const v1::Calibration& calibration);

}  // namespace assay

#endif  // ASSAY_WORKER_CEILING_CALIBRATE_H_
