// The common part of every unary handler: one finish, counted. Only for the .cc files of services.
#ifndef ASSAY_SERVER_SERVICES_UNARY_CALL_H_
#define ASSAY_SERVER_SERVICES_UNARY_CALL_H_

#include <grpcpp/grpcpp.h>

#include <utility>

#include "base/clock.h"
#include "server/executor.h"
#include "server/grpc_status.h"
#include "server/metrics.h"
#include "server/services/context.h"

namespace assay {

// A handle to copy into callbacks; Finish is called exactly once over all copies. Request and
// response of the call live until then.
class UnaryCall {
 public:
  UnaryCall(const ServiceContext& services, grpc::CallbackServerContext* context, Rpc rpc)
      : context_(context),
        reactor_(context->DefaultReactor()),
        clock_(services.clock),
        metrics_(services.metrics),
        start_(services.clock->Monotonic()),
        rpc_(rpc) {}

  // Callable from any thread. After it, request and response are gone.
  void Finish(const absl::Status& status) const {
    metrics_->CountRpc(rpc_, status.code(), clock_->Monotonic() - start_);
    reactor_->Finish(status.ok() ? grpc::Status::OK : ToGrpcStatus(status));
  }

  // Finishes at once; for `return call.FinishNow(...)` in a handler.
  grpc::ServerUnaryReactor* FinishNow(const absl::Status& status) const {
    grpc::ServerUnaryReactor* reactor = reactor_;
    Finish(status);
    return reactor;
  }

  // Runs `work`, which returns the status to finish with, on `executor`. Calls that their client
  // gave up meanwhile are not run.
  template <typename Work>
  grpc::ServerUnaryReactor* FinishOn(Executor* executor, Work work) const {
    grpc::ServerUnaryReactor* reactor = reactor_;
    const absl::Status queued = executor->Submit([call = *this, work = std::move(work)]() mutable {
      call.Finish(call.context_->IsCancelled()
                      ? absl::CancelledError("the client gave up before the call was run")
                      : work());
    });
    if (!queued.ok()) Finish(queued);
    return reactor;
  }

  // Runs `work`, which sees to Finish itself.
  template <typename Work>
  grpc::ServerUnaryReactor* ContinueOn(Executor* executor, Work work) const {
    grpc::ServerUnaryReactor* reactor = reactor_;
    const absl::Status queued = executor->Submit(std::move(work));
    if (!queued.ok()) Finish(queued);
    return reactor;
  }

  grpc::ServerUnaryReactor* reactor() const { return reactor_; }

 private:
  grpc::CallbackServerContext* context_;
  grpc::ServerUnaryReactor* reactor_;
  Clock* clock_;
  Metrics* metrics_;
  absl::Duration start_;
  Rpc rpc_;
};

}  // namespace assay

#endif  // ASSAY_SERVER_SERVICES_UNARY_CALL_H_
