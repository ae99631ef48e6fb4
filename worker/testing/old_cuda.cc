// libassay_old_cuda.so: a driver that lacks most functions. Only for tests.
#include "base/cuda/driver_abi.h"

extern "C" __attribute__((visibility("default"))) assay::cuda::CUresult cuInit(unsigned int flags) {
  return assay::cuda::CUDA_SUCCESS;
}
