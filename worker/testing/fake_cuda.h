// What tests see of libassay_fake_cuda.so, a driver that looks real: it exports no function of the
// emulated one, runs kernels in it when somebody waits for them, and times them by a clock of its
// own. Only for tests; nothing in the product knows it.
#ifndef ASSAY_WORKER_TESTING_FAKE_CUDA_H_
#define ASSAY_WORKER_TESTING_FAKE_CUDA_H_

#include <cstddef>

#include "base/cuda/driver_abi.h"

namespace assay {

// "cuda-assay-test-fake-sm_80" is the class of its device.
inline constexpr char kFakeCudaDeviceName[] = "Assay test fake";

// Plain values; the test and the library share one of each process.
struct FakeCudaControl {
  // What the device is like. Read when a context is made.
  size_t device_bytes = size_t{256} << 20;
  int arch = 80;
  int driver_version = 13000;
  int device_count = 1;
  // What goes wrong.
  cuda::CUresult init_result = cuda::CUDA_SUCCESS;
  cuda::CUresult helper_load_result = cuda::CUDA_SUCCESS;  // of the runner's own module
  cuda::CUresult load_result = cuda::CUDA_SUCCESS;         // of the modules of candidates
  cuda::CUresult fail_next_kernel = cuda::CUDA_SUCCESS;    // the next one of a candidate, once
  bool hangs = false;                                      // kernels of candidates never end
  double event_excess_ns = 0;  // the device's clock runs ahead by so much
  // What was done.
  int candidate_launches = 0;
  int empty_launches = 0;
  int gates_passed = 0;  // that were open when the device came to them
  int gates_given_up = 0;
  int launches_behind_gate = 0;         // of candidates
  int cache_flushes = 0;                // 32-bit fills of at least twice the L2 cache
  int zero_flushes = 0;                 // of them, with zeros or the value of the one before
  cuda::CUdeviceptr flush_address = 0;  // what the last of them wrote
  unsigned char* mapped = nullptr;      // the last memory of the host that the device sees
  size_t mapped_bytes = 0;
  int persisting_resets = 0;
  int shared_fills = 0;
  int live_contexts = 0;
};

inline constexpr size_t kFakeCudaL2Bytes = size_t{1} << 20;

// Exported by the library as "assayFakeCudaReset": makes the driver as it is in a fresh process.
using FakeCudaResetFunction = FakeCudaControl* (*)();

}  // namespace assay

#endif  // ASSAY_WORKER_TESTING_FAKE_CUDA_H_
