#include "server/services/watch_reactor.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status.h"
#include "server/access/call_facts.h"
#include "server/dispatch/dispatcher.h"
#include "server/executor.h"
#include "server/grpc_status.h"
#include "server/metrics.h"
#include "server/services/admission.h"
#include "store/records.h"
#include "store/store.h"

namespace assay {

WatchReactor* WatchReactor::Start(const ServiceContext& services,
                                  const grpc::CallbackServerContext& context,
                                  const v1::WatchEvaluationRequest& request) {
  auto reactor = std::make_shared<WatchReactor>(
      services, BeginCall(services.access, context, RpcName(Rpc::kWatchEvaluation), request.name()),
      request.name(), request.after_revision());
  WatchReactor* const raw = reactor.get();
  raw->self_ = std::move(reactor);
  // Kept alive here too: a failure may finish the stream before this function returns.
  const std::shared_ptr<WatchReactor> keep = raw->shared_from_this();
  const absl::Status opened = raw->Open(request);
  if (!opened.ok()) raw->Close(opened);
  return raw;
}

WatchReactor::WatchReactor(const ServiceContext& services, std::shared_ptr<CallAccess> caller,
                           std::string name, int64_t after_revision)
    : services_(services),
      caller_(std::move(caller)),
      name_(std::move(name)),
      start_(services.clock->Monotonic()),
      after_revision_(after_revision),
      cursor_(after_revision) {}

absl::Status WatchReactor::Open(const v1::WatchEvaluationRequest& request) {
  if (caller_ != nullptr) ASSAY_RETURN_IF_ERROR(caller_->refusal);
  ASSAY_RETURN_IF_ERROR(CheckResourceName("evaluations/", name_));
  if (request.after_revision() < 0) {
    return ErrorWithReason(absl::StatusCode::kInvalidArgument, "REVISION_INVALID",
                           absl::StrCat("after_revision is ", request.after_revision(),
                                        "; use 0, or a revision of the evaluation"));
  }
  if (caller_ != nullptr) {
    ASSAY_RETURN_IF_ERROR(services_.access->AddStream(*caller_));
    has_slot_ = true;
  }
  ASSAY_RETURN_IF_ERROR(services_.watches->Subscribe(name_, shared_from_this()));
  return services_.reads->Submit([self = shared_from_this()] { self->ReadStored(); });
}

void WatchReactor::ReadStored() {
  {
    absl::MutexLock lock(&mutex_);
    if (closing_) return;
  }
  auto stored = services_.store->GetEvaluation(name_, /*include_samples=*/false);
  if (!stored.ok()) return Close(stored.status());
  // Revisions reach clients when they are durable, so the store's is never behind an honest one.
  if (after_revision_ > stored->revision()) {
    return Close(ErrorWithReason(
        absl::StatusCode::kInvalidArgument, "REVISION_INVALID",
        absl::StrCat("after_revision is ", after_revision_, ", but ", name_, " is at revision ",
                     stored->revision(), "; use 0, or a revision that was seen")));
  }
  services_.dispatcher->Decorate(&*stored);
  auto snapshot = std::make_shared<v1::Evaluation>(*std::move(stored));
  StripSamples(snapshot.get());
  {
    absl::MutexLock lock(&mutex_);
    cursor_.Offer(std::move(snapshot), /*live=*/false);
  }
  Advance();
}

void WatchReactor::OnChange(EvaluationSnapshot snapshot) {
  {
    absl::MutexLock lock(&mutex_);
    cursor_.Offer(std::move(snapshot), /*live=*/true);
  }
  Advance();
}

void WatchReactor::OnAccessChange() { Advance(); }

void WatchReactor::OnHubShutdown() {
  Close(ErrorWithReason(absl::StatusCode::kUnavailable, "SHUTTING_DOWN",
                        "the server is shutting down; watch again with after_revision"));
}

void WatchReactor::OnWriteDone(bool ok) {
  {
    absl::MutexLock lock(&mutex_);
    writing_ = false;
  }
  if (!ok) return Close(absl::CancelledError("the client went away"));
  Advance();
}

void WatchReactor::OnCancel() { Close(absl::CancelledError("the client went away")); }

void WatchReactor::OnDone() { self_.reset(); }

void WatchReactor::Close(const absl::Status& status) {
  {
    absl::MutexLock lock(&mutex_);
    if (!closing_) close_status_ = status;
    closing_ = true;
  }
  Advance();
}

void WatchReactor::Advance() {
  bool write = false;
  // A token may end while its stream is open.
  absl::Status status = caller_ == nullptr || !caller_->refusal.ok()
                            ? absl::OkStatus()
                            : services_.access->Recheck(*caller_);
  {
    absl::MutexLock lock(&mutex_);
    if (writing_ || finished_) return;
    if (!status.ok()) {
      closing_ = true;
      close_status_ = status;
    }
    EvaluationSnapshot snapshot = closing_ ? nullptr : cursor_.Take();
    if (snapshot != nullptr) {
      *response_.mutable_evaluation() = *snapshot;
      write = writing_ = true;
    } else if (closing_ || cursor_.finished()) {
      finished_ = true;
      status = close_status_;
    } else {
      return;
    }
  }
  // Only one thread gets here: writing_ keeps the others out until OnWriteDone, finished_ for good.
  if (write) return StartWrite(&response_);
  services_.watches->Unsubscribe(name_, this);
  if (has_slot_) services_.access->RemoveStream(*caller_);
  services_.metrics->CountRpc(Rpc::kWatchEvaluation, status.code(),
                              services_.clock->Monotonic() - start_);
  // The last use of *this: OnDone may follow at once.
  EndCall(services_.access, caller_.get(), status.code(), [this, status](const absl::Status&) {
    Finish(status.ok() ? grpc::Status::OK : ToGrpcStatus(status));
  });
}

}  // namespace assay
