// Keeps one lease alive, and says at once when it is lost.
//
// A worker fences itself: when no renewal came through before the lease is over by its own clock,
// the work stops, because another worker may have it by then.
#ifndef ASSAY_WORKER_AGENT_LEASE_KEEPER_H_
#define ASSAY_WORKER_AGENT_LEASE_KEEPER_H_

#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "worker/agent/session.h"
#include "worker/agent/transport.h"

namespace assay {

enum class LeaseState {
  kStanding,
  kFenced,     // the coordinator says that it is gone
  kCancelled,  // the evaluation was cancelled: stop, and give the lease back
  kExpired,    // no renewal came through in time
};

// Thread-safe.
class LeaseKeeper {
 public:
  // `duration` counts from now. Everything outlives the keeper.
  LeaseKeeper(DispatchTransport* transport, Session* session, Clock* clock, LeaseName lease,
              absl::Duration duration);

  // Renews when that is due. Blocks for at most a third of the lease.
  void Tick();
  // Until the next renewal.
  absl::Duration UntilDue();
  LeaseState state();
  void SetStage(std::string_view stage);
  const LeaseName& lease() const { return lease_; }

 private:
  void TakeError(const absl::Status& status, const std::string& session);

  DispatchTransport* const transport_;
  Session* const session_;
  Clock* const clock_;
  const LeaseName lease_;
  absl::Mutex mutex_;
  absl::Duration duration_ ABSL_GUARDED_BY(mutex_);
  absl::Duration over_ ABSL_GUARDED_BY(mutex_);      // monotonic time at which the lease ends
  absl::Duration next_due_ ABSL_GUARDED_BY(mutex_);  // monotonic time of the next renewal
  LeaseState state_ ABSL_GUARDED_BY(mutex_) = LeaseState::kStanding;
  std::string stage_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace assay

#endif  // ASSAY_WORKER_AGENT_LEASE_KEEPER_H_
