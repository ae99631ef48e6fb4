#include "worker/backend/cuda/driver.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace assay {

absl::StatusOr<std::unique_ptr<CudaDriver>> CudaDriver::Load(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = dlerror();
    return ErrorWithReason(
        absl::StatusCode::kUnavailable, "DRIVER_MISSING",
        absl::StrCat("the CUDA driver cannot be loaded: ", why == nullptr ? path : why,
                     "; install the NVIDIA driver, or judge on the emulated device"));
  }
  const auto resolve = [library](const char* name) { return dlsym(library, name); };
  auto driver = std::make_unique<CudaDriver>();
  if (const char* const missing = cuda::LoadDriverFunctions(resolve, &driver->functions_)) {
    return ErrorWithReason(absl::StatusCode::kUnavailable, "DRIVER_TOO_OLD",
                           absl::StrCat("the CUDA driver ", path, " has no ", missing,
                                        "; install one of CUDA 11.4 or later"));
  }
  driver->is_emulated_ = cuda::LoadEmulatorFunctions(resolve, &driver->emulator_) == nullptr;
  return driver;
}

absl::StatusOr<cuda::CUdevice> CudaDriver::FindDevice(int ordinal) const {
  const cuda::CUresult started = functions_.cuInit(0);
  int count = 0;
  cuda::CUresult result = started;
  if (started == cuda::CUDA_SUCCESS) result = functions_.cuDeviceGetCount(&count);
  if (result != cuda::CUDA_SUCCESS && result != cuda::CUDA_ERROR_NO_DEVICE) {
    return ErrorWithReason(absl::StatusCode::kUnavailable, "DRIVER_FAILED",
                           absl::StrCat("the CUDA driver does not start: ", ErrorName(result),
                                        "; see what nvidia-smi says, and the kernel's log"));
  }
  if (ordinal < 0 || ordinal >= count) {
    return ErrorWithReason(
        absl::StatusCode::kUnavailable, "DEVICE_NOT_FOUND",
        absl::StrCat("there is no CUDA device ", ordinal, "; the driver has ", count,
                     "; see nvidia-smi -L, and that /dev/nvidia* can be opened"));
  }
  cuda::CUdevice device = 0;
  ASSAY_RETURN_IF_ERROR(Check(functions_.cuDeviceGet(&device, ordinal), "cuDeviceGet"));
  return device;
}

std::string CudaDriver::ErrorName(cuda::CUresult result) const {
  const char* name = nullptr;
  functions_.cuGetErrorName(result, &name);
  return name == nullptr ? absl::StrCat("error ", static_cast<int>(result)) : name;
}

absl::Status CudaDriver::Check(cuda::CUresult result, const char* what) const {
  if (result == cuda::CUDA_SUCCESS) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(what, ": ", ErrorName(result)));
}

}  // namespace assay
