// What runner and guest say to each other while the guest is set up, over a socket that is closed
// before any of the candidate's code runs. Both are built from this header.
#ifndef ASSAY_WORKER_GUEST_GUEST_PROTOCOL_H_
#define ASSAY_WORKER_GUEST_GUEST_PROTOCOL_H_

#include <cstdint>

#include "worker/guest/control_block.h"

namespace assay {

// Values of assay.internal.v1.GuestFault.Kind; a test holds them together.
enum class GuestFaultKind : uint32_t {
  kNone = 0,
  kLoadFailed = 1,
  kSignal = 2,
  kExited = 3,
  kTimedOut = 4,
  kOutOfBounds = 5,
  kInputWritten = 6,
  kCanaryBroken = 7,
  kForbiddenSyscall = 8,
  kMemoryLimit = 9,
  kOutputFlood = 10,
  kHiddenWork = 11,
  kProcessCreation = 12,
};

// Descriptors that the guest starts with, beside 1 and 2.
inline constexpr int kGuestSocketFd = 3;
inline constexpr int kGuestControlFd = 4;

// Exit codes of the guest itself.
inline constexpr int kGuestExitFault = 113;  // `fault` in the control block says what
inline constexpr int kGuestExitSetup = 114;  // before the candidate: a line on standard error

inline constexpr char kGuestDirectFlag[] = "--direct";  // without a sandbox
inline constexpr char kGuestProbeFlag[] = "--probe";    // tries walls; see guest_probe.h

// Bytes of unmapped pages on each side of a tensor. An access this near to a tensor is blamed on
// it.
inline constexpr uint64_t kGuardBytes = 1 << 20;
inline constexpr uint64_t kPageBytes = 4096;
inline constexpr uint64_t kTensorAlignBytes = 64;

struct GuestTensorSetup {
  uint64_t bytes = 0;     // of the tensor
  uint32_t writable = 0;  // outputs
  uint32_t unused = 0;
};

// Runner to guest. With it come the descriptors: the artifact, then one per tensor.
struct GuestSetup {
  uint32_t tensor_count = 0;
  uint32_t axis_count = 0;
  uint64_t address_space_bytes = 0;  // RLIMIT_AS; 0: a cgroup limits memory
  GuestTensorSetup tensors[kGuestTensorsMax];
  int64_t axes[kGuestAxesMax] = {};
};

// Guest to runner: where the tensors start in the guest.
struct GuestLayout {
  uint64_t tensor_address[kGuestTensorsMax] = {};
};

// A tensor's file: the tensor ends, rounded up to kTensorAlignBytes, with the last page, so that
// the guard page follows it at once. What lies before it in its first page is slack.
constexpr uint64_t PaddedTensorBytes(uint64_t bytes) {
  const uint64_t at_least = bytes == 0 ? 1 : bytes;
  return (at_least + kTensorAlignBytes - 1) / kTensorAlignBytes * kTensorAlignBytes;
}
constexpr uint64_t TensorFileBytes(uint64_t bytes) {
  return (PaddedTensorBytes(bytes) + kPageBytes - 1) / kPageBytes * kPageBytes;
}
constexpr uint64_t TensorOffset(uint64_t bytes) {
  return TensorFileBytes(bytes) - PaddedTensorBytes(bytes);
}

}  // namespace assay

#endif  // ASSAY_WORKER_GUEST_GUEST_PROTOCOL_H_
