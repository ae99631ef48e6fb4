#include "worker/agent/lease_keeper.h"

#include <algorithm>
#include <utility>

#include "assay/internal/v1/dispatch.pb.h"
#include "base/log.h"
#include "base/status.h"

namespace assay {
namespace {

// After a renewal that did not come through.
constexpr absl::Duration kRetryAfter = absl::Seconds(1);

absl::Duration FromProto(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

}  // namespace

LeaseKeeper::LeaseKeeper(DispatchTransport* transport, Session* session, Clock* clock,
                         LeaseName lease, absl::Duration duration)
    : transport_(transport),
      session_(session),
      clock_(clock),
      lease_(std::move(lease)),
      duration_(duration),
      over_(clock->Monotonic() + duration),
      next_due_(clock->Monotonic() + duration / 3) {}

LeaseState LeaseKeeper::state() {
  absl::MutexLock lock(&mutex_);
  // Asked of the clock and not of a thread: a renewal that hangs must not keep the work alive.
  if (state_ == LeaseState::kStanding && clock_->Monotonic() >= over_) {
    state_ = LeaseState::kExpired;
  }
  return state_;
}

absl::Duration LeaseKeeper::UntilDue() {
  absl::MutexLock lock(&mutex_);
  return std::max(absl::ZeroDuration(), next_due_ - clock_->Monotonic());
}

void LeaseKeeper::SetStage(std::string_view stage) {
  absl::MutexLock lock(&mutex_);
  stage_ = std::string(stage);
}

void LeaseKeeper::Tick() {
  internal::v1::RenewLeaseRequest request;
  absl::Duration timeout;
  const absl::Duration sent = clock_->Monotonic();
  if (state() != LeaseState::kStanding) return;
  {
    absl::MutexLock lock(&mutex_);
    if (sent < next_due_) return;
    next_due_ = sent + kRetryAfter;
    timeout = std::min(duration_ / 3, over_ - sent);
    request.set_stage(stage_);
  }
  const std::string session = session_->id();
  request.set_session(session);
  request.mutable_ref()->set_evaluation(lease_.evaluation);
  request.mutable_ref()->set_fence(lease_.fence);
  internal::v1::RenewLeaseResponse response;
  const absl::Status status = transport_->Renew(request, timeout, &response);
  if (!status.ok()) {
    TakeError(status, session);
    return;
  }
  absl::MutexLock lock(&mutex_);
  if (response.cancel() && state_ == LeaseState::kStanding) state_ = LeaseState::kCancelled;
  duration_ = FromProto(response.duration());
  // The coordinator counts from when it answered; we count from before we asked.
  over_ = sent + duration_;
  next_due_ = sent + duration_ / 3;
}

void LeaseKeeper::TakeError(const absl::Status& status, const std::string& session) {
  Log(LogLevel::kWarning, "renewal_failed",
      {{"evaluation", lease_.evaluation}, {"message", status.ToString()}});
  bool gone = false;
  switch (ClassifyError(status)) {
    case CallError::kFenced:
    case CallError::kRefused:
      gone = true;
      break;
    case CallError::kSessionSuperseded:
      // With an older session of our own it means nothing; with the present one the name has a new
      // owner.
      gone = session_->id() == session;
      break;
    case CallError::kSessionLost: {
      bool kept = false;
      const absl::Status registered = session_->Register(session, &lease_, &kept);
      gone = registered.ok() && !kept;
      if (kept) {
        absl::MutexLock lock(&mutex_);
        next_due_ = clock_->Monotonic();
      }
      break;
    }
    case CallError::kTransient:
      break;
  }
  if (!gone) return;
  absl::MutexLock lock(&mutex_);
  if (state_ == LeaseState::kStanding) state_ = LeaseState::kFenced;
}

}  // namespace assay
