// The common part of every unary handler: access is checked before any work, and there is one
// finish, counted. Only for the .cc files of services.
#ifndef ASSAY_SERVER_SERVICES_UNARY_CALL_H_
#define ASSAY_SERVER_SERVICES_UNARY_CALL_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "server/access/call_facts.h"
#include "server/executor.h"
#include "server/grpc_status.h"
#include "server/metrics.h"
#include "server/services/context.h"
#include "store/store.h"

namespace assay {

// A handle to copy into callbacks; Finish is called exactly once over all copies. Request and
// response of the call live until then. A call that access refuses is finished with the refusal by
// whatever the handler does with it; the work that it is given is not run, so a handler does all
// its work in Run, FinishWith, FinishOn or ContinueOn.
class UnaryCall {
 public:
  // `resource` is what the call is about, for the log of access.
  UnaryCall(const ServiceContext& services, grpc::CallbackServerContext* context, Rpc rpc,
            std::string_view resource = "")
      : context_(context),
        reactor_(context->DefaultReactor()),
        clock_(services.clock),
        metrics_(services.metrics),
        access_(services.access),
        caller_(BeginCall(services.access, *context, RpcName(rpc), resource)),
        start_(services.clock->Monotonic()),
        rpc_(rpc) {}

  // Callable from any thread. After it, request and response are gone.
  void Finish(const absl::Status& result) const {
    const absl::Status status = is_refused() ? caller_->refusal : result;
    EndCall(access_, caller_.get(), status.code(),
            [call = *this, status](const absl::Status& recorded) {
              const absl::Status& told = status.ok() ? recorded : status;
              call.metrics_->CountRpc(call.rpc_, told.code(),
                                      call.clock_->Monotonic() - call.start_);
              call.reactor_->Finish(told.ok() ? grpc::Status::OK : ToGrpcStatus(told));
            });
  }

  // Finishes at once; for `return call.FinishNow(...)` in a handler.
  grpc::ServerUnaryReactor* FinishNow(const absl::Status& status) const {
    grpc::ServerUnaryReactor* reactor = reactor_;
    Finish(status);
    return reactor;
  }

  // Runs `work`, which returns the status to finish with, on this thread.
  template <typename Work>
  grpc::ServerUnaryReactor* FinishWith(const Work& work) const {
    return FinishNow(is_refused() ? absl::OkStatus() : work());
  }

  // Runs `work`, which sees to Finish itself, on this thread.
  template <typename Work>
  grpc::ServerUnaryReactor* Run(const Work& work) const {
    grpc::ServerUnaryReactor* reactor = reactor_;
    if (is_refused()) return FinishNow(absl::OkStatus());
    work();
    return reactor;
  }

  // Runs `work`, which returns the status to finish with, on `executor`. Calls that their client
  // gave up meanwhile are not run.
  template <typename Work>
  grpc::ServerUnaryReactor* FinishOn(Executor* executor, Work work) const {
    grpc::ServerUnaryReactor* reactor = reactor_;
    if (is_refused()) return FinishNow(absl::OkStatus());
    const absl::Status queued = executor->Submit([call = *this, work = std::move(work)]() mutable {
      call.Finish(call.context_->IsCancelled()
                      ? absl::CancelledError("the client gave up before the call was run")
                      : work());
    });
    if (!queued.ok()) Finish(queued);
    return reactor;
  }

  // Runs `work`, which sees to Finish itself, on `executor`.
  template <typename Work>
  grpc::ServerUnaryReactor* ContinueOn(Executor* executor, Work work) const {
    grpc::ServerUnaryReactor* reactor = reactor_;
    if (is_refused()) return FinishNow(absl::OkStatus());
    const absl::Status queued = executor->Submit(std::move(work));
    if (!queued.ok()) Finish(queued);
    return reactor;
  }

  // For calls that are always recorded, and whose work and record the store writes as one: what to
  // write of a call that ends well. FinishRecorded then adds no other.
  NewAccessEvent MakeRecord() const { return access_->MakeRecord(*caller_, absl::StatusCode::kOk); }
  void FinishRecorded() const {
    caller_->is_recorded = false;
    Finish(absl::OkStatus());
  }

  // Whether somebody in particular calls; without tokens nobody does.
  bool has_token() const { return caller_ != nullptr && !caller_->token.empty(); }
  // "tokens/{token}"; empty without.
  std::string token() const { return caller_ != nullptr ? caller_->token : std::string(); }
  // See AccessControl. From one thread at a time.
  absl::Status DemandAdmin(std::string_view what) const {
    return caller_ != nullptr ? access_->DemandAdmin(what, caller_.get()) : absl::OkStatus();
  }

 private:
  bool is_refused() const { return caller_ != nullptr && !caller_->refusal.ok(); }

  grpc::CallbackServerContext* context_;
  grpc::ServerUnaryReactor* reactor_;
  Clock* clock_;
  Metrics* metrics_;
  AccessControl* access_;
  std::shared_ptr<CallAccess> caller_;  // null: anybody, and nothing is recorded
  absl::Duration start_;
  Rpc rpc_;
};

}  // namespace assay

#endif  // ASSAY_SERVER_SERVICES_UNARY_CALL_H_
