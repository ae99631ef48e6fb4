// Where NVRTC, its headers and ptxas are on this machine: a CUDA toolkit, or the nvidia-* wheels of
// PyPI that scripts/setup puts into a folder. Only looks at files; thread-safe.
#ifndef ASSAY_WORKER_BUILDER_CUDA_TOOLKIT_H_
#define ASSAY_WORKER_BUILDER_CUDA_TOOLKIT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace assay {

struct CudaToolkit {
  std::string root;
  std::string library_folder;                // real path
  std::string library;                       // file in it: "libnvrtc.so.13"
  std::vector<std::string> include_folders;  // real paths, in the order of the search
  std::string ptxas;                         // path; empty: not there
};

// Folders to look in, first come first served: $ASSAY_CUDA_ROOT alone where it is set, else
// /usr/local/cuda and what scripts/setup fills: /var/cache/assay/cuda,
// ${XDG_CACHE_HOME:-$HOME/.cache}/assay/cuda.
std::vector<std::string> CudaRoots();

// UNAVAILABLE with reason kCudaNotInstalled, which says what to install, when no root has NVRTC and
// headers.
absl::StatusOr<CudaToolkit> FindCudaToolkit(const std::vector<std::string>& roots);

}  // namespace assay

#endif  // ASSAY_WORKER_BUILDER_CUDA_TOOLKIT_H_
