// The writable variables of a candidate's module. They would carry state from call to call, so
// before each they are put back to what they held when the module was loaded.
//
// Not thread-safe.
#ifndef ASSAY_WORKER_BACKEND_CUDA_MODULE_VARIABLES_H_
#define ASSAY_WORKER_BACKEND_CUDA_MODULE_VARIABLES_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/backend/cuda/device_context.h"
#include "worker/backend/cuda/device_program.h"

namespace assay {

class ModuleVariables {
 public:
  // `context` outlives it.
  explicit ModuleVariables(DeviceContext* context) : context_(*context) {}

  // Loads `ptx` into `program` and keeps the images of its variables, before any launch. A module
  // whose variables the driver does not find by name is loaded again with all of them visible; when
  // one is still not found, or they are too large to keep, that is the candidate's end.
  absl::StatusOr<std::optional<GuestEnd>> Load(const std::string& ptx, DeviceProgram* program);

  absl::Status PutBack();

 private:
  struct Image {
    cuda::CUdeviceptr address = 0;
    std::vector<std::byte> bytes;
  };
  // The name of the first variable that is not found; empty: all were.
  absl::StatusOr<std::string> Find(const std::vector<std::string>& names, cuda::CUmodule module);
  absl::StatusOr<std::optional<GuestEnd>> TakeImages();

  DeviceContext& context_;
  std::vector<Image> images_;
  std::vector<size_t> sizes_;
};

}  // namespace assay

#endif  // ASSAY_WORKER_BACKEND_CUDA_MODULE_VARIABLES_H_
