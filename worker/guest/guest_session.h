// The runner's side of one guest: a sandboxed process that loads one artifact and calls it on
// command.
//
// Not thread-safe; lives no longer than the thread that started it. A session is used for one
// artifact and one set of tensors; a fault ends it.
#ifndef ASSAY_WORKER_GUEST_GUEST_SESSION_H_
#define ASSAY_WORKER_GUEST_GUEST_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/limits.h"
#include "worker/backend/cuda/device_health.h"

namespace assay {

namespace v1 {
class ObservedWork;
}

struct GuestOptions {
  std::string guest_binary;      // path of assay-guest
  int slot = 0;                  // chooses uid and cgroup; unique among live guests of the machine
  int64_t memory_bytes_max = 0;  // beside the tensors
  int core = -1;                 // pins the guest; -1: not pinned
  bool allow_unsandboxed = false;  // for sanitizer builds and machines without user namespaces;
                                   // reported as missing walls
  absl::Duration load_timeout = absl::Seconds(limits::kCallSeconds);  // of the artifact
  // Of a baseline; its guests alone see them.
  std::vector<std::string> libraries;
};

// One tensor argument.
struct GuestBuffer {
  std::string name;
  size_t bytes = 0;
  bool writable = false;  // outputs
};

// Why a guest ended. Kinds as in assay.internal.v1.GuestFault; 0 when it was lost by no fault of
// the candidate (killed from outside, or by a machine without memory): the infrastructure's.
struct GuestEnd {
  int kind = 0;
  std::string message;
  std::string tensor;
  int64_t byte_offset = 0;
  int signal = 0;
  // What a check of the device found, and where in the candidate's source.
  std::string check{};
  std::string file{};
  int line = 0;
  // It left the device in a state that nobody knows: a sticky error, or a kernel that still runs.
  bool device_unclean = false;
};

// What the runner does with the operands before a call, while the guest sleeps.
enum class GuestCache {
  kLeave,
  kWarm,  // leave the caches of the guest's core as after a walk over every line
  kCold,  // flush every line from all caches
};

// Of a call on a device, beside its time.
struct DeviceTiming {
  // All launches were on the device before the first began. Without it the host's share is in the
  // time.
  bool gated = false;
  double wall_ns = 0;  // by the runner's clock, from the release of the launches to their seen end
  double late_ns = 0;  // what the device went on working after the call's end
  std::optional<DeviceHealth> health;  // right after the call, where the machine tells
};

struct CallTiming {
  double duration_ns = 0;        // go to done, by the runner's clock
  int64_t context_switches = 0;  // of the guest from its sleep to its next one, beyond the wake-up
  int64_t migrations = 0;        // 1 when the guest changed cores
  // The guest's time on cores from its sleep before the call to its next one, by the kernel's
  // account, less the time from armed to done by the runner's clock: what it did outside of the
  // timed call. A candidate cannot forge it. Less than the truth, down to below 0, when the guest
  // had no core in that time; not set when the runner had none. So a busy machine accuses nobody.
  std::optional<double> outside_ns;
  // Set where a device was timed; duration_ns is then by its own events.
  std::optional<DeviceTiming> device;
};

// What an emulated device leaves open to the next call, as hardware does.
struct CallConditions {
  uint64_t order = 0;   // seed of the order of blocks, warps and lanes; 0: the natural one
  bool serial = false;  // one block after the other, so that the order alone decides
  // Approximate functions err within the bounds that are documented for them.
  bool perturb_approximations = false;
  // Module-scope variables stay as the last call left them, instead of being put back.
  bool keep_variables = false;
  // Another number than at the last call: tensors and workspaces lie at addresses that were never
  // used before.
  uint64_t placement = 0;
  int left_out_launch = -1;  // of the plan, from 0; -1: none
  // What the device's clocks show: the offset, and so many ticks an operation of a warp.
  uint64_t clock_rate = 1;
  uint64_t clock_offset = 0;
};

// What text and plan say of a candidate on an emulated device.
struct CandidateTraits {
  bool has_variables = false;  // at module scope, and writable
  bool reads_clock = false;
  std::vector<std::string> kernels;  // of the plan's launches, in order
};

class GuestSession {
 public:
  // Starts a sandboxed guest that waits for Load. Nothing in it depends on the candidate, so
  // sessions may be started ahead. Errors are the infrastructure's.
  static absl::StatusOr<std::unique_ptr<GuestSession>> Start(const GuestOptions& options);

  virtual ~GuestSession() = default;  // kills and reaps the guest

  // Maps the tensors (inputs read-only, outputs between guard pages with canaries in the slack) and
  // loads the artifact. `buffers` in the order of assay_invoke. After it, when ended() is set, the
  // candidate is at fault; a bad status is the infrastructure's.
  virtual absl::Status Load(int artifact_fd, const std::vector<GuestBuffer>& buffers,
                            const std::vector<int64_t>& axes) = 0;

  // The runner's own writable view of a tensor; stays valid until destruction.
  virtual std::span<std::byte> Buffer(size_t index) = 0;

  // One call. nullopt when the guest ended instead: see ended(). Checks canaries. `once_armed`,
  // where there is one, runs when the guest is ready and before the clock starts.
  virtual std::optional<CallTiming> Call(GuestCache cache, absl::Duration timeout,
                                         const std::function<void()>& once_armed) = 0;
  std::optional<CallTiming> Call(GuestCache cache, absl::Duration timeout) {
    return Call(cache, timeout, nullptr);
  }

  // The same handshake around an empty function inside the guest, after the same preparation: what
  // every measurement contains.
  virtual std::optional<CallTiming> CallEmpty(GuestCache cache) = 0;

  // Whether conditions can be set: on an emulated device alone.
  virtual bool has_conditions() const { return false; }
  // Holds for all calls from now on.
  virtual void SetConditions(const CallConditions& conditions) {}
  // Set after Load on an emulated device; null elsewhere.
  virtual const CandidateTraits* traits() const { return nullptr; }
  // On an emulated device, after a call that ended the session under conditions that nobody
  // promises: ready again, as after Load, with the same content. Errors are the infrastructure's.
  virtual absl::Status Revive() { return absl::UnimplementedError("not an emulated device"); }
  // Exact counts of the last call, where they are known; null elsewhere.
  virtual const v1::ObservedWork* observed() const { return nullptr; }

  // Set once the guest has failed, was killed or timed out.
  virtual const std::optional<GuestEnd>& ended() const = 0;

  // Control bits of floating point that the candidate's calls left changed, as in control_block.h:
  // a claim, since the candidate shares the process that tells. 0 where there is no such process.
  virtual uint32_t fp_control_bits() const { return 0; }

  // stdout and stderr of the candidate so far, capped.
  virtual std::string output() = 0;

  // Process id of the guest as seen from here, for scheduling and accounting; 0 before Load, and
  // where there is no process.
  virtual int pid() const { return 0; }

  // Walls that stand around this guest, and those that the machine could not give.
  virtual const std::vector<std::string>& walls() const = 0;
  virtual const std::vector<std::string>& missing_walls() const = 0;
};

}  // namespace assay

#endif  // ASSAY_WORKER_GUEST_GUEST_SESSION_H_
