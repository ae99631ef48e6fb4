// Which options a CUDA candidate may add. Pure.
#ifndef ASSAY_WORKER_BUILDER_CUDA_OPTIONS_H_
#define ASSAY_WORKER_BUILDER_CUDA_OPTIONS_H_

#include <string>
#include <string_view>
#include <vector>

namespace assay {

struct CudaOptions {
  std::vector<std::string> compiler;  // as NVRTC spells them
  std::string standard;               // "c++17"; empty: not given
  bool has_defines = false;           // -D among them
};

// Adds what `option` means to `options`; false when it is not on the list of README.md. Spellings
// of nvcc are taken, and options that NVRTC need not be told are dropped.
bool TakeCudaOption(std::string_view option, CudaOptions* options);

}  // namespace assay

#endif  // ASSAY_WORKER_BUILDER_CUDA_OPTIONS_H_
