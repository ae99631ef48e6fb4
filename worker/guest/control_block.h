// The page shared by runner and guest: the handshake of a call, and what the guest says about its
// end.
//
// Everything in it can be written by the candidate, so the runner treats every field as a claim.
// Time is taken by the runner alone, from its store to `go` until it sees `done`.
//
//   runner                                   guest
//   command = kArm, futex wake          ->   touches or flushes operands as `cache` says, then
//                                       <-   state = kArmed, spins on `go`
//   t0; go = n                          ->   assay_invoke(...)
//   spins on `done`; t1                 <-   done = n
//   challenge = random                  ->   back in its loop it answers
//   spins on `answer`; t2               <-   answer = challenge
//
// A candidate that signals `done` early and goes on working cannot answer before it has really
// returned: t2 - t1 shows it.
#ifndef ASSAY_WORKER_GUEST_CONTROL_BLOCK_H_
#define ASSAY_WORKER_GUEST_CONTROL_BLOCK_H_

#include <atomic>
#include <cstdint>

namespace assay {

inline constexpr uint32_t kGuestTensorsMax = 32;
inline constexpr uint32_t kGuestAxesMax = 16;

enum class GuestState : uint32_t {
  kStarting = 0,
  kReady = 1,   // waits on `command` (futex)
  kLoaded = 2,  // artifact loaded, tensors mapped; waits on `command`
  kArmed = 3,   // spins on `go`
  kFailed = 4,  // `fault` says why
};

enum class GuestCache : uint32_t {
  kLeave = 0,
  kWarm = 1,  // read every operand before the call
  kCold = 2,  // flush every operand from all caches before the call
};

struct GuestFaultRecord {
  uint32_t kind = 0;  // values of assay.internal.v1.GuestFault.Kind
  int32_t signal = 0;
  uint64_t address = 0;  // of the faulting access
  uint32_t is_write = 0;
  int32_t syscall = -1;
  char message[256] = {};
};

struct alignas(64) GuestControlBlock {
  alignas(64) std::atomic<uint32_t> command{0};  // counts up; futex word
  std::atomic<uint32_t> cache{0};
  alignas(64) std::atomic<uint32_t> state{0};  // GuestState; futex word
  alignas(64) std::atomic<uint64_t> go{0};
  alignas(64) std::atomic<uint64_t> done{0};
  alignas(64) std::atomic<uint64_t> challenge{0};
  alignas(64) std::atomic<uint64_t> answer{0};
  alignas(64) GuestFaultRecord fault;
};

static_assert(std::atomic<uint64_t>::is_always_lock_free);

}  // namespace assay

#endif  // ASSAY_WORKER_GUEST_CONTROL_BLOCK_H_
