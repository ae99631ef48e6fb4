// <assert.h> for NVRTC: assert is built in.
#ifndef ASSAY_WORKER_BUILDER_CUDA_HEADERS_ASSERT_H_
#define ASSAY_WORKER_BUILDER_CUDA_HEADERS_ASSERT_H_

#ifdef NDEBUG
#undef assert
#define assert(condition) ((void)0)
#endif

#endif  // ASSAY_WORKER_BUILDER_CUDA_HEADERS_ASSERT_H_
