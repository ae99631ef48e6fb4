// <stdlib.h> for NVRTC: malloc, free and abs are built in.
#ifndef ASSAY_WORKER_BUILDER_CUDA_HEADERS_STDLIB_H_
#define ASSAY_WORKER_BUILDER_CUDA_HEADERS_STDLIB_H_

#include <stddef.h>

#endif  // ASSAY_WORKER_BUILDER_CUDA_HEADERS_STDLIB_H_
