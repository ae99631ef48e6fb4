// Where a runner takes its guests from.
#ifndef ASSAY_WORKER_RUNNER_GUEST_SOURCE_H_
#define ASSAY_WORKER_RUNNER_GUEST_SOURCE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "worker/guest/guest_session.h"

namespace assay {

// Not thread-safe.
class GuestSource {
 public:
  virtual ~GuestSource() = default;
  // A started guest, used by nobody before. Blocks while one starts. Errors are the
  // infrastructure's.
  virtual absl::StatusOr<std::unique_ptr<GuestSession>> Take() = 0;
  // Has up to `count` guests started in the background.
  virtual void Prepare(int count) = 0;
  // Takes a guest that is no longer needed. Ending a sandbox and waiting until it is gone takes
  // longer than a small work itself, so it may sleep on until the runner ends.
  virtual void Retire(std::unique_ptr<GuestSession> guest) = 0;
  // Returns when nothing starts in the background, so that a measurement is not disturbed.
  virtual void WaitIdle() = 0;
};

}  // namespace assay

#endif  // ASSAY_WORKER_RUNNER_GUEST_SOURCE_H_
