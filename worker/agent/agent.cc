#include "worker/agent/agent.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "assay/internal/v1/dispatch.pb.h"
#include "assay/v1/fleet.pb.h"
#include "base/log.h"
#include "base/status.h"

namespace assay {
namespace {

constexpr absl::Duration kCallTimeout = absl::Seconds(10);
constexpr absl::Duration kPollSlack = absl::Seconds(10);
constexpr absl::Duration kSleepSlice = absl::Milliseconds(50);
constexpr absl::Duration kSelfCheckPause = absl::Seconds(5);
constexpr int kCompleteTriesMax = 1000;
constexpr int kAbandonTriesMax = 5;

// Renews a lease until destroyed.
class RenewThread {
 public:
  explicit RenewThread(LeaseKeeper* keeper) : keeper_(keeper), thread_([this] { Loop(); }) {}
  ~RenewThread() {
    {
      absl::MutexLock lock(&mutex_);
      stop_ = true;
    }
    thread_.join();
  }

 private:
  void Loop() {
    while (true) {
      {
        absl::MutexLock lock(&mutex_);
        mutex_.AwaitWithTimeout(absl::Condition(&stop_), keeper_->UntilDue());
        if (stop_) return;
      }
      keeper_->Tick();
      if (keeper_->state() != LeaseState::kStanding) return;
    }
  }

  LeaseKeeper* const keeper_;
  absl::Mutex mutex_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace

Agent::Agent(AgentOptions options)
    : options_(std::move(options)),
      session_(options_.transport, options_.description),
      backoff_(options_.backoff_min) {}

void Agent::Drain() {
  drain_began_ns_.store(absl::ToInt64Nanoseconds(options_.clock->Monotonic()));
  draining_.store(true);
  options_.transport->CancelAcquire();
}

bool Agent::DrainGraceOver() const {
  return draining_.load() &&
         options_.clock->Monotonic() - absl::Nanoseconds(drain_began_ns_.load()) >=
             options_.drain_grace;
}

void Agent::Backoff() {
  const absl::Duration until = options_.clock->Monotonic() + backoff_;
  while (!draining_.load() && options_.clock->Monotonic() < until) {
    options_.clock->SleepFor(std::min(kSleepSlice, backoff_));
  }
  // A drained worker that still has something to deliver must not spin.
  if (draining_.load()) options_.clock->SleepFor(kSleepSlice);
  backoff_ = std::min(2 * backoff_, options_.backoff_max);
}

absl::Status Agent::RegisterUntilDone(const std::string& stale) {
  while (!draining_.load()) {
    bool kept = false;
    const absl::Status status = session_.Register(stale, nullptr, &kept);
    if (status.ok()) {
      backoff_ = options_.backoff_min;
      return status;
    }
    if (ClassifyError(status) == CallError::kRefused) {
      return Annotate(status, "the server refuses this worker");
    }
    Log(LogLevel::kWarning, "registration_failed", {{"message", status.ToString()}});
    Backoff();
  }
  return absl::OkStatus();
}

absl::Status Agent::Run() {
  ASSAY_RETURN_IF_ERROR(RegisterUntilDone(""));
  if (!draining_.load() && options_.on_registered != nullptr) options_.on_registered();
  while (!draining_.load()) ASSAY_RETURN_IF_ERROR(Turn());
  return absl::OkStatus();
}

absl::Status Agent::Turn() {
  const std::string session = session_.id();
  // A poll whose answer was lost is repeated under the same id, so that its lease is not.
  if (poll_id_.empty()) poll_id_ = absl::StrCat("poll-", ++poll_count_);
  internal::v1::AcquireLeaseRequest request;
  request.set_session(session);
  request.set_poll_id(poll_id_);
  request.mutable_wait()->set_seconds(absl::ToInt64Seconds(options_.poll_wait));
  internal::v1::AcquireLeaseResponse response;
  const absl::Status status =
      options_.transport->Acquire(request, options_.poll_wait + kPollSlack, &response);
  if (!status.ok()) {
    if (draining_.load()) return absl::OkStatus();
    switch (ClassifyError(status)) {
      case CallError::kSessionLost:
        poll_id_.clear();
        return RegisterUntilDone(session);
      case CallError::kSessionSuperseded:
        return Annotate(status, "another worker registered under this name; choose another --name");
      default:
        Log(LogLevel::kWarning, "poll_failed", {{"message", status.ToString()}});
        Backoff();
        return absl::OkStatus();
    }
  }
  poll_id_.clear();
  backoff_ = options_.backoff_min;
  if (response.has_lease()) {
    RunLease(response.lease());
  } else if (response.drain()) {
    // Drained by an operator: stay registered, ask again later.
    Backoff();
  }
  return absl::OkStatus();
}

absl::Status Agent::Judge(const internal::v1::Lease& lease, v1::Outcome* outcome,
                          v1::Timeline* timeline) {
  std::unique_ptr<RenewThread> renewing;
  if (options_.renew_in_background) renewing = std::make_unique<RenewThread>(keeper_.get());
  PipelineHooks hooks;
  hooks.set_stage = [this](std::string_view stage) { keeper_->SetStage(stage); };
  hooks.keep_going = [this] {
    return keeper_->state() == LeaseState::kStanding && !DrainGraceOver();
  };
  return options_.judge(lease.work(), hooks, outcome, timeline);
}

void Agent::RunLease(const internal::v1::Lease& lease) {
  const LeaseName name{lease.ref().evaluation(), lease.ref().fence()};
  if (draining_.load()) {
    Abandon(name, "", "", "");
    return;
  }
  const absl::Duration duration =
      absl::Seconds(lease.duration().seconds()) + absl::Nanoseconds(lease.duration().nanos());
  keeper_ =
      std::make_unique<LeaseKeeper>(options_.transport, &session_, options_.clock, name, duration);
  v1::Outcome outcome;
  v1::Timeline timeline;
  const absl::Status status = Judge(lease, &outcome, &timeline);
  const LeaseState state = keeper_->state();
  Log(LogLevel::kInfo, "judged",
      {{"evaluation", name.evaluation},
       {"fence", absl::StrCat(name.fence)},
       {"verdict", status.ok() ? v1::Verdict_Name(outcome.verdict()) : status.ToString()},
       {"reason", outcome.reason()}});
  if (status.ok()) {
    // Even when the lease seems over: the fence decides, and the outcome may still be welcome.
    if (state != LeaseState::kFenced) Complete(name, outcome, timeline);
  } else if (state == LeaseState::kCancelled || DrainGraceOver()) {
    Abandon(name, "", "", "");
  } else if (state == LeaseState::kStanding) {
    const std::string reason = GetReason(status);
    Abandon(name, absl::StatusCodeToString(status.code()),
            reason.empty() ? "WORKER_FAILED" : reason, std::string(status.message()));
  }
  const bool failed = !status.ok() && state == LeaseState::kStanding;
  if (failed || (options_.is_suspect != nullptr && options_.is_suspect())) CheckSelfUntilDone();
  keeper_.reset();
}

bool Agent::Recover(const absl::Status& status, const LeaseName& lease,
                    const std::string& session) {
  switch (ClassifyError(status)) {
    case CallError::kSessionLost: {
      bool kept = false;
      const absl::Status registered = session_.Register(session, &lease, &kept);
      if (registered.ok()) return kept;
      break;
    }
    case CallError::kSessionSuperseded:
      // The renewing thread may have registered anew meanwhile.
      if (session_.id() == session) return false;
      break;
    case CallError::kFenced:
    case CallError::kRefused:
      return false;
    case CallError::kTransient:
      break;
  }
  Backoff();
  return !DrainGraceOver();
}

void Agent::Complete(const LeaseName& lease, const v1::Outcome& outcome,
                     const v1::Timeline& timeline) {
  internal::v1::CompleteLeaseRequest request;
  request.mutable_ref()->set_evaluation(lease.evaluation);
  request.mutable_ref()->set_fence(lease.fence);
  *request.mutable_outcome() = outcome;
  *request.mutable_timeline() = timeline;
  absl::Status status;
  for (int attempt = 0; attempt < kCompleteTriesMax; ++attempt) {
    const std::string session = session_.id();
    request.set_session(session);
    internal::v1::CompleteLeaseResponse response;
    status = options_.transport->Complete(request, kCallTimeout, &response);
    if (status.ok()) {
      backoff_ = options_.backoff_min;
      return;
    }
    keeper_->Tick();
    if (!Recover(status, lease, session)) break;
  }
  Log(LogLevel::kWarning, "outcome_not_delivered",
      {{"evaluation", lease.evaluation}, {"message", status.ToString()}});
  if (ClassifyError(status) == CallError::kRefused) {
    Abandon(lease, "INTERNAL", "OUTCOME_REFUSED", std::string(status.message()));
  }
}

void Agent::Abandon(const LeaseName& lease, const std::string& code, const std::string& reason,
                    const std::string& message) {
  internal::v1::AbandonLeaseRequest request;
  request.mutable_ref()->set_evaluation(lease.evaluation);
  request.mutable_ref()->set_fence(lease.fence);
  request.mutable_error()->set_code(code);
  request.mutable_error()->set_reason(reason);
  request.mutable_error()->set_message(message);
  for (int attempt = 0; attempt < kAbandonTriesMax; ++attempt) {
    const std::string session = session_.id();
    request.set_session(session);
    const absl::Status status = options_.transport->Abandon(request, kCallTimeout);
    if (status.ok() || !Recover(status, lease, session)) return;
  }
}

void Agent::CheckSelfUntilDone() {
  if (options_.self_check == nullptr) return;
  bool sick = false;
  while (!draining_.load()) {
    const absl::Status status = options_.self_check();
    if (status.ok()) {
      if (sick) ReportHealth(false);
      return;
    }
    Log(LogLevel::kError, "self_check_failed", {{"message", status.ToString()}});
    if (!sick) ReportHealth(true);
    sick = true;
    const absl::Duration until = options_.clock->Monotonic() + kSelfCheckPause;
    while (!draining_.load() && options_.clock->Monotonic() < until) {
      options_.clock->SleepFor(kSleepSlice);
    }
  }
}

void Agent::ReportHealth(bool sick) {
  auto description = std::make_shared<internal::v1::RegisterWorkerRequest>(*options_.description);
  for (v1::Device& device : *description->mutable_description()->mutable_devices()) {
    if (sick) device.add_caveats("SELF_CHECK_FAILED");
  }
  session_.Describe(std::move(description));
  bool kept = false;
  const absl::Status status = session_.Register(session_.id(), nullptr, &kept);
  if (status.ok()) return;
  Log(LogLevel::kWarning, "health_not_reported", {{"message", status.ToString()}});
}

}  // namespace assay
