// Health and identity of a GPU by NVML, which is loaded at run time. It only asks: no setting of a
// device is ever changed.
#ifndef ASSAY_WORKER_BACKEND_CUDA_NVML_H_
#define ASSAY_WORKER_BACKEND_CUDA_NVML_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/cuda/driver_abi.h"
#include "worker/backend/cuda/device_health.h"

namespace assay {

// Why clocks may be lower than they could be. Newer drivers know more bits.
inline constexpr uint64_t kThrottleIdle = 0x1;
inline constexpr uint64_t kThrottleApplicationClocks = 0x2;
inline constexpr uint64_t kThrottlePowerCap = 0x4;
inline constexpr uint64_t kThrottleHardwareSlowdown = 0x8;
inline constexpr uint64_t kThrottleSyncBoost = 0x10;
inline constexpr uint64_t kThrottleSoftwareThermal = 0x20;
inline constexpr uint64_t kThrottleHardwareThermal = 0x40;
inline constexpr uint64_t kThrottlePowerBrake = 0x80;
inline constexpr uint64_t kThrottleDisplayClock = 0x100;

// "power cap, hardware thermal"; bits without a name in hexadecimal; "none" for 0.
std::string ThrottleText(uint64_t bits);

// What hardly changes while a process runs. nullopt: not told.
struct NvmlFacts {
  std::string driver_version;  // empty: not told
  std::optional<bool> persistence_mode;
  std::optional<bool> mig_mode;                    // the device is partitioned
  std::optional<uint64_t> uncorrected_ecc_errors;  // since the driver was loaded
  std::optional<double> power_limit_w;
  std::optional<int> sm_clock_max_mhz;
};

struct GpuProcess {
  uint32_t pid = 0;
  std::optional<uint64_t> memory_bytes;
};

// One device as NVML sees it. Not thread-safe. A call may take milliseconds: not for the middle of
// a timed span.
class Nvml : public DeviceHealthSource {
 public:
  struct Options {
    std::string library = "libnvidia-ml.so.1";
    std::optional<cuda::CUuuid> uuid;  // by cuDeviceGetUuid, of a device or of a slice of one
    std::string pci_bus_id;            // "0000:65:00.0"; tried when NVML does not know the UUID
  };

  // UNAVAILABLE when the library cannot be loaded or started; NOT_FOUND when it does not know the
  // device.
  static absl::StatusOr<std::unique_ptr<Nvml>> Open(const Options& options);
  ~Nvml() override;

  // nullopt when nothing of it is told; what is not told of the rest is 0.
  std::optional<DeviceHealth> Sample() override;
  NvmlFacts Facts();
  // Compute processes on the device beside the calling one; nullopt: not told. Process ids are the
  // host's: in a container the caller itself counts as another.
  std::optional<std::vector<GpuProcess>> OtherProcesses();

 private:
  struct Functions;
  using Device = void*;

  explicit Nvml(std::unique_ptr<Functions> functions);
  absl::Status FindDevice(const Options& options);

  const std::unique_ptr<Functions> functions_;
  Device device_ = nullptr;
};

// "GPU-01234567-89ab-cdef-0123-456789abcdef"; `prefix` is "GPU-" for a device and "MIG-" for a
// slice.
std::string NvmlUuid(std::string_view prefix, const cuda::CUuuid& uuid);

}  // namespace assay

#endif  // ASSAY_WORKER_BACKEND_CUDA_NVML_H_
