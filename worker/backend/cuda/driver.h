// The CUDA driver as a library that is loaded at run time.
#ifndef ASSAY_WORKER_BACKEND_CUDA_DRIVER_H_
#define ASSAY_WORKER_BACKEND_CUDA_DRIVER_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/cuda/driver_functions.h"
#include "base/cuda/emulator_abi.h"

namespace assay {

// Of the real driver, as the dynamic linker finds it.
inline constexpr char kCudaDriverLibrary[] = "libcuda.so.1";

// What to do about CUDA_ERROR_JIT_COMPILER_NOT_FOUND.
inline constexpr char kInstallJitCompiler[] =
    "the driver's PTX compiler, libnvidia-ptxjitcompiler.so.1, is missing: install the whole "
    "NVIDIA driver";

// Immutable; thread-safe as far as the driver is. Stays loaded: drivers do not take kindly to being
// unloaded.
class CudaDriver {
 public:
  // UNAVAILABLE with reason DRIVER_MISSING or DRIVER_TOO_OLD says what to install.
  static absl::StatusOr<std::unique_ptr<CudaDriver>> Load(const std::string& path);

  const cuda::DriverFunctions& functions() const { return functions_; }
  bool is_emulated() const { return is_emulated_; }
  // Only when it is emulated.
  const cuda::EmulatorFunctions& emulator() const { return emulator_; }

  // Initialises the driver and finds device number `ordinal`; makes no context. UNAVAILABLE with
  // reason DEVICE_NOT_FOUND or DRIVER_FAILED.
  absl::StatusOr<cuda::CUdevice> FindDevice(int ordinal) const;

  // INTERNAL naming `what` and the driver's error, unless it is CUDA_SUCCESS.
  absl::Status Check(cuda::CUresult result, const char* what) const;
  std::string ErrorName(cuda::CUresult result) const;

 private:
  cuda::DriverFunctions functions_;
  cuda::EmulatorFunctions emulator_;
  bool is_emulated_ = false;
};

}  // namespace assay

#endif  // ASSAY_WORKER_BACKEND_CUDA_DRIVER_H_
