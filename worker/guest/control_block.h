// The page shared by runner and guest: the handshake of a call, and what the guest says about its
// end.
//
// Everything in it can be written by the candidate, so the runner treats every field as a claim.
// Time is taken by the runner alone, from its store to `go` until it sees `done`.
//
//   runner                                   guest
//   command = kArm, futex wake          ->   touches or flushes operands as `cache` says, then
//                                       <-   armed = command, spins on `go`
//   t0; go = random n                   ->   assay_invoke(...)
//   spins on `done`; t1                 <-   done = n
//   challenge = random                  ->   back in its loop it answers
//   spins on `answer`; t2               <-   answer = challenge
//   waits until the kernel says that         sleeps on `command`
//   the guest sleeps; t3
//
// A candidate that signals `done` early and goes on working cannot answer before it has really
// returned: t2 - t1 shows it. One that forges the answer as well still cannot compute in its sleep:
// t3 - t1 shows it, and comes from the kernel.
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

enum class GuestCache : uint32_t {
  kLeave = 0,
  kWarm = 1,  // bring every operand's lines into the caches before the call
  kCold = 2,  // flush every operand from all caches before the call
};

// What one command runs between `go` and `done`.
enum class GuestAction : uint32_t {
  kInvoke = 0,  // the candidate
  kEmpty = 1,   // a function that does nothing
};

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
  std::atomic<uint32_t> cache{0};                // GuestCache
  std::atomic<uint32_t> action{0};               // GuestAction
  alignas(64) std::atomic<uint32_t> state{0};    // GuestState; futex word
  std::atomic<uint32_t> armed{0};                // the command for which the guest is armed
  // Question and answer share a cache line, so that one transfer each way is enough: a third less
  // than with a line each.
  alignas(64) std::atomic<uint64_t> go{0};
  std::atomic<uint64_t> done{0};
  alignas(64) std::atomic<uint64_t> challenge{0};
  std::atomic<uint64_t> answer{0};
  alignas(64) GuestFaultRecord fault;
};

static_assert(std::atomic<uint64_t>::is_always_lock_free);

}  // namespace assay

#endif  // ASSAY_WORKER_GUEST_CONTROL_BLOCK_H_
