// What a device tells of its clocks and sensors.
#ifndef ASSAY_WORKER_BACKEND_CUDA_DEVICE_HEALTH_H_
#define ASSAY_WORKER_BACKEND_CUDA_DEVICE_HEALTH_H_

#include <cstdint>
#include <optional>

namespace assay {

// What was not told is 0.
struct DeviceHealth {
  int sm_clock_mhz = 0;
  int memory_clock_mhz = 0;
  int temperature_c = 0;
  double power_w = 0;
  uint64_t throttle_bits = 0;  // why clocks are lowered, as NVML numbers its reasons
};

// Not thread-safe. A null source: the machine does not tell.
class DeviceHealthSource {
 public:
  virtual ~DeviceHealthSource() = default;
  // nullopt when the device does not answer. May take a millisecond.
  virtual std::optional<DeviceHealth> Sample() = 0;
};

}  // namespace assay

#endif  // ASSAY_WORKER_BACKEND_CUDA_DEVICE_HEALTH_H_
