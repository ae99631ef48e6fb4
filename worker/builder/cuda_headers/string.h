// <string.h> for NVRTC: memcpy and memset are built in.
#ifndef ASSAY_WORKER_BUILDER_CUDA_HEADERS_STRING_H_
#define ASSAY_WORKER_BUILDER_CUDA_HEADERS_STRING_H_

#include <stddef.h>

#endif  // ASSAY_WORKER_BUILDER_CUDA_HEADERS_STRING_H_
