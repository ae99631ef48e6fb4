// <stddef.h> for NVRTC, which has size_t and ptrdiff_t built in.
#ifndef ASSAY_WORKER_BUILDER_CUDA_HEADERS_STDDEF_H_
#define ASSAY_WORKER_BUILDER_CUDA_HEADERS_STDDEF_H_

#ifndef NULL
#define NULL 0
#endif
#ifndef offsetof
#define offsetof(type, member) ((size_t) & (((type*)0)->member))
#endif
struct alignas(16) assay_max_align {
  long long a;
  double b;
};
using max_align_t = assay_max_align;

#endif  // ASSAY_WORKER_BUILDER_CUDA_HEADERS_STDDEF_H_
