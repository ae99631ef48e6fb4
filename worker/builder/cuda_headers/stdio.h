// <stdio.h> for NVRTC: printf is built in.
#ifndef ASSAY_WORKER_BUILDER_CUDA_HEADERS_STDIO_H_
#define ASSAY_WORKER_BUILDER_CUDA_HEADERS_STDIO_H_

#include <stddef.h>

#endif  // ASSAY_WORKER_BUILDER_CUDA_HEADERS_STDIO_H_
