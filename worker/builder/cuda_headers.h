// Standard headers that NVRTC lacks, as texts that are compiled in; cuda_headers/ has them.
#ifndef ASSAY_WORKER_BUILDER_CUDA_HEADERS_H_
#define ASSAY_WORKER_BUILDER_CUDA_HEADERS_H_

#include <cstddef>

namespace assay {

struct CudaHeader {
  const char* name;  // as included: "cstdint"
  const char* text;
};

// Sorted by name. Defined in a file that the build makes of the folder.
extern const CudaHeader kCudaHeaders[];
extern const size_t kCudaHeaderCount;

}  // namespace assay

#endif  // ASSAY_WORKER_BUILDER_CUDA_HEADERS_H_
