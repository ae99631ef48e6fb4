// <inttypes.h> for NVRTC: the types, and the formats of printf that kernels use.
#ifndef ASSAY_WORKER_BUILDER_CUDA_HEADERS_INTTYPES_H_
#define ASSAY_WORKER_BUILDER_CUDA_HEADERS_INTTYPES_H_

#include <stdint.h>

#define PRId32 "d"
#define PRIu32 "u"
#define PRIx32 "x"
#define PRId64 "lld"
#define PRIu64 "llu"
#define PRIx64 "llx"

#endif  // ASSAY_WORKER_BUILDER_CUDA_HEADERS_INTTYPES_H_
