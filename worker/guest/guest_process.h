// The process of a guest: in a sandbox, or started directly where that was allowed. Inside
// GuestSession only. Not thread-safe.
#ifndef ASSAY_WORKER_GUEST_GUEST_PROCESS_H_
#define ASSAY_WORKER_GUEST_GUEST_PROCESS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/guest/guest_session.h"
#include "worker/sandbox/sandbox.h"

namespace assay {

class GuestProcess {
 public:
  static absl::StatusOr<std::unique_ptr<GuestProcess>> Start(
      const GuestOptions& options, const std::vector<std::pair<int, int>>& descriptors);
  virtual ~GuestProcess() = default;  // kills and reaps
  virtual absl::StatusOr<int> CommandPid() = 0;
  virtual void Kill() = 0;
  virtual absl::StatusOr<SandboxExit> Wait(absl::Duration timeout) = 0;
  // True once it has ended; a system call, no wait.
  virtual bool Ended() const = 0;
  virtual int end_descriptor() const = 0;
  virtual const std::vector<std::string>& walls() const = 0;
  virtual const std::vector<std::string>& missing_walls() const = 0;
};

}  // namespace assay

#endif  // ASSAY_WORKER_GUEST_GUEST_PROCESS_H_
