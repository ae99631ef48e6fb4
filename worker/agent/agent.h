// The worker's lease loop: register, acquire, judge, complete; again.
#ifndef ASSAY_WORKER_AGENT_AGENT_H_
#define ASSAY_WORKER_AGENT_AGENT_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "worker/agent/lease_keeper.h"
#include "worker/agent/pipeline.h"
#include "worker/agent/session.h"
#include "worker/agent/transport.h"

namespace assay {

namespace internal::v1 {
class Lease;
}

struct AgentOptions {
  DispatchTransport* transport = nullptr;
  Clock* clock = nullptr;
  // Worker, description and lease_count_max.
  std::shared_ptr<const internal::v1::RegisterWorkerRequest> description;
  // The pipeline.
  std::function<absl::Status(const internal::v1::WorkSpec&, const PipelineHooks&, v1::Outcome*,
                             v1::Timeline*)>
      judge;
  // A known-good candidate through the same pipeline, the canary. Asked after a failure of the
  // infrastructure, and when `is_suspect` says so after a judgement: a sick worker takes no leases,
  // and registers again with the caveat SELF_CHECK_FAILED on its devices until it is well.
  std::function<absl::Status()> self_check;
  std::function<bool()> is_suspect;     // may be empty
  std::function<void()> on_registered;  // once
  // Renews on a thread of its own. Tests renew from their fake of `judge` instead.
  bool renew_in_background = true;
  absl::Duration poll_wait = absl::Seconds(30);
  absl::Duration backoff_min = absl::Milliseconds(100);
  absl::Duration backoff_max = absl::Seconds(5);
  // How long a running evaluation may go on after Drain before it is given back.
  absl::Duration drain_grace = absl::Seconds(20);
};

class Agent {
 public:
  explicit Agent(AgentOptions options);

  // Blocks until drained. ABORTED when another worker registered under our name.
  absl::Status Run();

  // Takes no more leases, finishes or gives back the present one, and lets Run return.
  // Thread-safe; not for signal handlers.
  void Drain();

  // The keeper of the present lease, for tests that renew by hand; null without a lease.
  LeaseKeeper* keeper() { return keeper_.get(); }

 private:
  absl::Status RegisterUntilDone(const std::string& stale);
  // One poll and what follows from it.
  absl::Status Turn();
  void RunLease(const internal::v1::Lease& lease);
  absl::Status Judge(const internal::v1::Lease& lease, v1::Outcome* outcome,
                     v1::Timeline* timeline);
  void Complete(const LeaseName& lease, const v1::Outcome& outcome, const v1::Timeline& timeline);
  // An empty code gives the lease back unused.
  void Abandon(const LeaseName& lease, const std::string& code, const std::string& reason,
               const std::string& message);
  void CheckSelfUntilDone();
  // Tells the coordinator once; a failure is only logged.
  void ReportHealth(bool sick);
  // What to do after an error of Complete or Abandon: true to try again.
  bool Recover(const absl::Status& status, const LeaseName& lease, const std::string& session);
  void Backoff();
  bool DrainGraceOver() const;

  const AgentOptions options_;
  Session session_;
  std::unique_ptr<LeaseKeeper> keeper_;
  std::atomic<bool> draining_{false};
  std::atomic<int64_t> drain_began_ns_{0};  // monotonic
  absl::Duration backoff_;
  int64_t poll_count_ = 0;
  std::string poll_id_;
};

}  // namespace assay

#endif  // ASSAY_WORKER_AGENT_AGENT_H_
