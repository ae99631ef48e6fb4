// A worker's registration with the coordinator, which may have to be renewed at any moment.
#ifndef ASSAY_WORKER_AGENT_SESSION_H_
#define ASSAY_WORKER_AGENT_SESSION_H_

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "worker/agent/transport.h"

namespace assay {

// A lease as both sides name it.
struct LeaseName {
  std::string evaluation;
  int64_t fence = 0;
};

// Thread-safe: the lease loop and the renewing thread share it.
class Session {
 public:
  // `description` has worker, description and lease_count_max set; `transport` outlives the
  // session.
  Session(DispatchTransport* transport,
          std::shared_ptr<const internal::v1::RegisterWorkerRequest> description)
      : transport_(transport), description_(std::move(description)) {}

  // Registers once, announcing `held` (may be null). *kept tells whether it still stands. When the
  // session is no longer `stale`, another thread was faster: nothing is sent, and *kept is true.
  absl::Status Register(const std::string& stale, const LeaseName* held, bool* kept);

  // Empty before the first registration.
  std::string id();

  // From the next registration on.
  void Describe(std::shared_ptr<const internal::v1::RegisterWorkerRequest> description);

 private:
  DispatchTransport* const transport_;
  // Held by the thread that registers, so that two never do at once. Not the lock of id_: no lock
  // that others wait for is held across a call.
  absl::Mutex registering_ ABSL_ACQUIRED_BEFORE(mutex_);
  absl::Mutex mutex_;
  std::string id_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const internal::v1::RegisterWorkerRequest> description_ ABSL_GUARDED_BY(mutex_);
};

// What an error of the coordinator means for the caller's session and lease.
enum class CallError {
  kTransient,          // try again
  kSessionLost,        // register again
  kSessionSuperseded,  // another process goes by our name
  kFenced,             // the lease is gone
  kRefused,            // the request itself is at fault
};
CallError ClassifyError(const absl::Status& status);

}  // namespace assay

#endif  // ASSAY_WORKER_AGENT_SESSION_H_
