#include "server/dispatch/dispatch_service.h"

#include <grpcpp/grpcpp.h>

#include <string>
#include <utility>

#include "assay/internal/v1/dispatch.grpc.pb.h"
#include "server/dispatch/dispatcher.h"
#include "server/grpc_status.h"

namespace assay {
namespace {

namespace iv1 = internal::v1;

// Finishes a unary call with what the dispatcher answers, on whatever thread.
template <typename Response>
DispatchDone<Response> Finisher(grpc::ServerUnaryReactor* reactor, Response* response) {
  return [reactor, response](absl::StatusOr<Response> result) {
    if (result.ok()) *response = *std::move(result);
    reactor->Finish(ToGrpcStatus(result.status()));
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
  explicit DispatchServiceImpl(Dispatcher* dispatcher) : dispatcher_(dispatcher) {}

  grpc::ServerUnaryReactor* RegisterWorker(grpc::CallbackServerContext* context,
                                           const iv1::RegisterWorkerRequest* request,
                                           iv1::RegisterWorkerResponse* response) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    dispatcher_->Register(*request, Finisher(reactor, response));
    return reactor;
  }

  grpc::ServerUnaryReactor* AcquireLease(grpc::CallbackServerContext* context,
                                         const iv1::AcquireLeaseRequest* request,
                                         iv1::AcquireLeaseResponse* response) override {
    auto* reactor = new PollReactor(dispatcher_, *request);
    dispatcher_->Acquire(*request, Finisher(reactor, response));
    return reactor;
  }

  grpc::ServerUnaryReactor* RenewLease(grpc::CallbackServerContext* context,
                                       const iv1::RenewLeaseRequest* request,
                                       iv1::RenewLeaseResponse* response) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    dispatcher_->Renew(*request, Finisher(reactor, response));
    return reactor;
  }

  grpc::ServerUnaryReactor* CompleteLease(grpc::CallbackServerContext* context,
                                          const iv1::CompleteLeaseRequest* request,
                                          iv1::CompleteLeaseResponse* response) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    dispatcher_->Complete(*request, Finisher(reactor, response));
    return reactor;
  }

  grpc::ServerUnaryReactor* AbandonLease(grpc::CallbackServerContext* context,
                                         const iv1::AbandonLeaseRequest* request,
                                         iv1::AbandonLeaseResponse* response) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    dispatcher_->Abandon(*request, Finisher(reactor, response));
    return reactor;
  }

 private:
  Dispatcher* const dispatcher_;
};

}  // namespace

std::unique_ptr<grpc::Service> NewDispatchService(Dispatcher* dispatcher) {
  return std::make_unique<DispatchServiceImpl>(dispatcher);
}

}  // namespace assay
