// The devices of a worker that run device-tier candidates: what they are, and who builds for them.
#ifndef ASSAY_WORKER_AGENT_DEVICE_BACKEND_H_
#define ASSAY_WORKER_AGENT_DEVICE_BACKEND_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/agent/pipeline.h"
#include "worker/agent/runner_source.h"
#include "worker/builder/cuda_builder.h"

namespace assay {

namespace internal::v1 {
class DeviceFacts;
}

// `backend` points into the builders.
struct DeviceParts {
  std::unique_ptr<Builder> ptx;
  std::unique_ptr<Builder> cuda;  // null: backend.cuda_missing says why
  DeviceBackend backend;
  // Of a real device.
  int multiprocessor_count = 0;
  std::string uuid;
  int driver_version = 0;  // 1000 major + 10 minor of CUDA
};

// Where things are on this machine.
struct DevicePaths {
  std::string cache_directory;
  std::string nvrtc_helper;     // assay-nvrtc
  std::string emulated_driver;  // libassay_emulated_cuda.so
  std::string cuda_driver;      // libcuda.so.1
};

absl::StatusOr<DeviceParts> MakeEmulatedDevice(int arch, const DevicePaths& paths);

// Has a runner of `runners` ask the driver for device number `ordinal`, so that this process never
// meets it. Blocks for seconds. UNAVAILABLE with the reasons of QueryDevice says what to do.
absl::StatusOr<DeviceParts> MakeCudaDevice(int ordinal, const DevicePaths& paths,
                                           RunnerSource* runners);

// "cuda-nvidia-h100-pcie-sm_90".
std::string CudaDeviceClass(const internal::v1::DeviceFacts& facts);

// UNAVAILABLE with reason DRIVER_TOO_OLD when `compiler`, "NVRTC 13.0", is of a later CUDA than the
// driver (1000 major + 10 minor): the driver would not know its PTX.
absl::Status CheckDriverReads(const std::string& compiler, int driver_version);

}  // namespace assay

#endif  // ASSAY_WORKER_AGENT_DEVICE_BACKEND_H_
