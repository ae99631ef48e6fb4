// Which compute capabilities the emulated driver has. Pure.
#ifndef ASSAY_WORKER_BACKEND_CUDA_EMULATED_ARCH_H_
#define ASSAY_WORKER_BACKEND_CUDA_EMULATED_ARCH_H_

namespace assay {

// See base/cuda/emulator_abi.h.
inline constexpr int kEmulatedArchs[] = {75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121};

// The one that stands for a real device: the largest that is not above the device's.
constexpr int EmulatedArchFor(int compute_capability) {
  int arch = kEmulatedArchs[0];
  for (const int known : kEmulatedArchs) {
    if (known <= compute_capability) arch = known;
  }
  return arch;
}

}  // namespace assay

#endif  // ASSAY_WORKER_BACKEND_CUDA_EMULATED_ARCH_H_
