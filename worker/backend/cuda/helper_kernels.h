// Small kernels of our own that a session runs around a candidate's. PTX text, so that nothing
// needs a compiler; for compute capability 7.5 and every later one.
#ifndef ASSAY_WORKER_BACKEND_CUDA_HELPER_KERNELS_H_
#define ASSAY_WORKER_BACKEND_CUDA_HELPER_KERNELS_H_

namespace assay {

inline constexpr int kHelperComputeCapability = 75;

// assay_gate(u64 words, u32 looks): waits until words[0] is not 0, or has looked `looks` times;
//   then it writes 1 into words[1]. One thread.
// assay_empty(): nothing.
// assay_checksum(u64 data, u64 count, u64 sum): adds to *sum a hash of `count` 32-bit words and
//   their places. Any grid and block.
// assay_fill_shared(u32 count, u32 value): writes `count` 32-bit words of dynamic shared memory.
extern const char kHelperKernels[];

}  // namespace assay

#endif  // ASSAY_WORKER_BACKEND_CUDA_HELPER_KERNELS_H_
