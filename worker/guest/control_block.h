// The page shared by runner and guest: the handshake of a call, and what the guest says about its
// end.
//
// Everything in it can be written by the candidate, so the runner treats every field as a claim.
// Time is taken by the runner alone, from its store to `go` until it sees `done`.
//
//   runner                                   guest
//   touches or flushes the operands          sleeps on `command`
//   command counts up, futex wake       ->
//                                       <-   armed = command, spins on `go`
//   t0; go = random n                   ->   assay_invoke(...)
//   spins on `done`; t1                 <-   done = n
//   waits until the kernel says that         sleeps on `command`
//   the guest sleeps
//
// A candidate that takes this loop over could compute before t0 or after t1. But it has one thread,
// and the kernel counts that thread's time on cores, exactly, each time it falls asleep. From sleep
// to sleep it has nothing to do but to arm, to spin and to make the call: what the runner's clock
// does not account for is hidden work. It sleeps while the inputs are shown.
#ifndef ASSAY_WORKER_GUEST_CONTROL_BLOCK_H_
#define ASSAY_WORKER_GUEST_CONTROL_BLOCK_H_

#include <atomic>
#include <cstdint>

namespace assay {

inline constexpr uint32_t kGuestTensorsMax = 32;
inline constexpr uint32_t kGuestAxesMax = 16;

enum class GuestState : uint32_t {
  kStarting = 0,
  kReady = 1,   // waits on the setup socket
  kLoaded = 2,  // artifact loaded, tensors mapped; sleeps on `command` (futex)
  kArmed = 3,   // spins on `go`
  kFailed = 4,  // `fault` says why
};

// What one command runs between `go` and `done`.
enum class GuestAction : uint32_t {
  kInvoke = 0,  // the candidate
  kEmpty = 1,   // a function that does nothing
};

// Bits of GuestControlBlock::fp_control: in the lower half those of MXCSR, in the upper those of
// the x87 control word.
inline constexpr uint32_t kFpSubnormalsAreZeroBits = 0x0040;
inline constexpr uint32_t kFpTrapBits = 0x1f80;
inline constexpr uint32_t kFpRoundingBits = 0x6000;
inline constexpr uint32_t kFpFlushBits = 0x8000;
inline constexpr uint32_t kFpX87Bits = 0xffff0000;

struct GuestFaultRecord {
  std::atomic<uint32_t> kind{0};  // values of assay.internal.v1.GuestFault.Kind; written last
  int32_t signal = 0;
  uint64_t address = 0;  // of the faulting access
  uint32_t is_write = 0;
  int32_t syscall = -1;
  char message[256] = {};
};

struct alignas(64) GuestControlBlock {
  alignas(64) std::atomic<uint32_t> command{0};  // counts up; futex word
  std::atomic<uint32_t> action{0};               // GuestAction
  alignas(64) std::atomic<uint32_t> state{0};    // GuestState; futex word
  std::atomic<uint32_t> armed{0};                // the command for which the guest is armed
  // Control bits of floating point that differed from their defaults after some call. The defaults
  // hold again at the next.
  std::atomic<uint32_t> fp_control{0};
  // Question and answer share a cache line, so that one transfer each way is enough: a third less
  // than with a line each.
  alignas(64) std::atomic<uint64_t> go{0};
  std::atomic<uint64_t> done{0};
  alignas(64) GuestFaultRecord fault;
};

static_assert(std::atomic<uint64_t>::is_always_lock_free);

}  // namespace assay

#endif  // ASSAY_WORKER_GUEST_CONTROL_BLOCK_H_
