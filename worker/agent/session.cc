#include "worker/agent/session.h"

#include "assay/internal/v1/dispatch.pb.h"
#include "base/status.h"

namespace assay {
namespace {

constexpr absl::Duration kRegisterTimeout = absl::Seconds(10);

}  // namespace

std::string Session::id() {
  absl::MutexLock lock(&mutex_);
  return id_;
}

void Session::Describe(std::shared_ptr<const internal::v1::RegisterWorkerRequest> description) {
  absl::MutexLock lock(&mutex_);
  description_ = std::move(description);
}

absl::Status Session::Register(const std::string& stale, const LeaseName* held, bool* kept) {
  absl::MutexLock registering(&registering_);
  if (id() != stale) {
    *kept = true;
    return absl::OkStatus();
  }
  internal::v1::RegisterWorkerRequest request;
  {
    absl::MutexLock lock(&mutex_);
    request = *description_;
  }
  if (held != nullptr) {
    internal::v1::LeaseRef& ref = *request.add_held_leases();
    ref.set_evaluation(held->evaluation);
    ref.set_fence(held->fence);
  }
  internal::v1::RegisterWorkerResponse response;
  ASSAY_RETURN_IF_ERROR(transport_->Register(request, kRegisterTimeout, &response));
  *kept = held == nullptr || response.kept_leases_size() > 0;
  absl::MutexLock lock(&mutex_);
  id_ = response.session();
  return absl::OkStatus();
}

CallError ClassifyError(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kAborted: {
      const std::string reason = GetReason(status);
      if (reason == "SESSION_UNKNOWN") return CallError::kSessionLost;
      if (reason == "SESSION_SUPERSEDED") return CallError::kSessionSuperseded;
      return CallError::kFenced;
    }
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return CallError::kRefused;
    default:
      return CallError::kTransient;
  }
}

}  // namespace assay
