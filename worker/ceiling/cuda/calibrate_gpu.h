// Measures a GPU's ceilings: bandwidths of DRAM and L2, rates of multiply-add and of the tensor
// cores, and how long a launch takes.
#ifndef ASSAY_WORKER_CEILING_CUDA_CALIBRATE_GPU_H_
#define ASSAY_WORKER_CEILING_CUDA_CALIBRATE_GPU_H_

#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "worker/backend/cuda/nvml.h"
#include "worker/ceiling/cuda/bench_device.h"
#include "worker/ceiling/cuda/bench_timer.h"

namespace assay {

namespace v1 {
class Calibration;
}

struct GpuCalibrateOptions {
  BenchDeviceFacts facts;
  BenchTimer* timer = nullptr;                          // outlives the call
  std::function<std::optional<DeviceHealth>()> health;  // empty: not known
  Clock* clock = SystemClock();
  // Device time before the first point: clocks rise and settle within it.
  absl::Duration warm_up = absl::Seconds(1);
  // What has not begun by then is left out, and listed.
  absl::Duration time_max = absl::Seconds(60);
};

// For every kernel and footprint the median time of several launches of the configuration (grid,
// width of accesses, shape of the instruction) that was the fastest in a first look at all of them.
// A point that fails is left out, with its reason in `left_out`; the first error is returned when
// nothing could be measured. Blocks for some ten seconds; the device must be otherwise idle.
absl::Status CalibrateGpu(const GpuCalibrateOptions& options, v1::Calibration* calibration);

}  // namespace assay

#endif  // ASSAY_WORKER_CEILING_CUDA_CALIBRATE_GPU_H_
