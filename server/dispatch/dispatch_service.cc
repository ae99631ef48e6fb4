#include "server/dispatch/dispatch_service.h"

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "assay/internal/v1/dispatch.grpc.pb.h"
#include "server/access/call_facts.h"
#include "server/dispatch/dispatcher.h"
#include "server/grpc_status.h"

namespace assay {
namespace {

namespace iv1 = internal::v1;

// Finishes a unary call with what the dispatcher answers, on whatever thread. A token that ended
// meanwhile gets nothing.
template <typename Response>
DispatchDone<Response> Finisher(AccessControl* access, std::shared_ptr<CallAccess> caller,
                                grpc::ServerUnaryReactor* reactor, Response* response) {
  return [access, caller = std::move(caller), reactor, response](absl::StatusOr<Response> result) {
    if (caller != nullptr && result.ok()) {
      const absl::Status standing = access->Recheck(*caller);
      if (!standing.ok()) result = standing;
    }
    if (result.ok()) *response = *std::move(result);
    const absl::Status status = result.status();
    EndCall(access, caller.get(), status.code(),
            [reactor, status](const absl::Status&) { reactor->Finish(ToGrpcStatus(status)); });
  };
}

// A long poll. The dispatcher answers every poll exactly once, forgotten ones too, so that the
// reactor ends after that answer and never before.
class PollReactor : public grpc::ServerUnaryReactor {
 public:
  PollReactor(Dispatcher* dispatcher, const iv1::AcquireLeaseRequest& request)
      : dispatcher_(dispatcher), session_(request.session()), poll_id_(request.poll_id()) {}
  void OnCancel() override { dispatcher_->ForgetPoll(session_, poll_id_); }
  void OnDone() override { delete this; }

 private:
  Dispatcher* const dispatcher_;
  const std::string session_;
  const std::string poll_id_;
};

class DispatchServiceImpl : public iv1::DispatchService::CallbackService {
 public:
  DispatchServiceImpl(Dispatcher* dispatcher, AccessControl* access)
      : dispatcher_(dispatcher), access_(access) {}

  grpc::ServerUnaryReactor* RegisterWorker(grpc::CallbackServerContext* context,
                                           const iv1::RegisterWorkerRequest* request,
                                           iv1::RegisterWorkerResponse* response) override {
    return Serve(context, "RegisterWorker", request->worker(), response,
                 [&](auto done) { dispatcher_->Register(*request, std::move(done)); });
  }

  grpc::ServerUnaryReactor* AcquireLease(grpc::CallbackServerContext* context,
                                         const iv1::AcquireLeaseRequest* request,
                                         iv1::AcquireLeaseResponse* response) override {
    return Serve(
        context, "AcquireLease", "", response,
        [&](auto done) { dispatcher_->Acquire(*request, std::move(done)); },
        [&] { return new PollReactor(dispatcher_, *request); });
  }

  grpc::ServerUnaryReactor* RenewLease(grpc::CallbackServerContext* context,
                                       const iv1::RenewLeaseRequest* request,
                                       iv1::RenewLeaseResponse* response) override {
    return Serve(context, "RenewLease", request->ref().evaluation(), response,
                 [&](auto done) { dispatcher_->Renew(*request, std::move(done)); });
  }

  grpc::ServerUnaryReactor* CompleteLease(grpc::CallbackServerContext* context,
                                          const iv1::CompleteLeaseRequest* request,
                                          iv1::CompleteLeaseResponse* response) override {
    return Serve(context, "CompleteLease", request->ref().evaluation(), response,
                 [&](auto done) { dispatcher_->Complete(*request, std::move(done)); });
  }

  grpc::ServerUnaryReactor* AbandonLease(grpc::CallbackServerContext* context,
                                         const iv1::AbandonLeaseRequest* request,
                                         iv1::AbandonLeaseResponse* response) override {
    return Serve(context, "AbandonLease", request->ref().evaluation(), response,
                 [&](auto done) { dispatcher_->Abandon(*request, std::move(done)); });
  }

 private:
  // Lets the worker in or refuses it; `start` is given where the answer goes. A worker that is let
  // in gets a reactor of `make_reactor`, if that is given.
  template <typename Response, typename Start>
  grpc::ServerUnaryReactor* Serve(
      grpc::CallbackServerContext* context, std::string_view method, std::string_view resource,
      Response* response, const Start& start,
      const std::function<grpc::ServerUnaryReactor*()>& make_reactor = nullptr) {
    std::shared_ptr<CallAccess> caller = BeginCall(access_, *context, method, resource);
    const absl::Status refusal = caller != nullptr ? caller->refusal : absl::OkStatus();
    grpc::ServerUnaryReactor* const reactor =
        refusal.ok() && make_reactor != nullptr ? make_reactor() : context->DefaultReactor();
    auto done = Finisher(access_, std::move(caller), reactor, response);
    refusal.ok() ? start(std::move(done)) : done(refusal);
    return reactor;
  }

  Dispatcher* const dispatcher_;
  AccessControl* const access_;
};

}  // namespace

std::unique_ptr<grpc::Service> NewDispatchService(Dispatcher* dispatcher, AccessControl* access) {
  return std::make_unique<DispatchServiceImpl>(dispatcher, access);
}

}  // namespace assay
