#include <grpcpp/grpcpp.h>

#include <chrono>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "assay/internal/v1/dispatch.grpc.pb.h"
#include "assay/internal/v1/rpc_status.pb.h"
#include "base/limits.h"
#include "base/status.h"
#include "worker/agent/transport.h"

namespace assay {
namespace {

using internal::v1::DispatchService;

constexpr int kReconnectMinMs = 100;
constexpr int kReconnectMaxMs = 2000;
constexpr int kKeepaliveMs = 20'000;
constexpr int kKeepaliveTimeoutMs = 10'000;

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  internal::v1::RpcStatus details;
  v1::ErrorDetail detail;
  if (details.ParseFromString(status.error_details())) {
    for (const google::protobuf::Any& any : details.details()) {
      if (!any.UnpackTo(&detail) || detail.reason().empty()) continue;
      return ErrorWithReason(code, detail.reason(), status.error_message());
    }
  }
  return absl::Status(code, status.error_message());
}

void SetDeadline(absl::Duration timeout, grpc::ClientContext* context) {
  context->set_deadline(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(timeout));
}

class GrpcTransport : public DispatchTransport {
 public:
  explicit GrpcTransport(const Endpoint& server) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectMinMs);
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kReconnectMinMs);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectMaxMs);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
    arguments.SetMaxReceiveMessageSize(static_cast<int>(limits::kMessageBytesMax));
    arguments.SetMaxSendMessageSize(static_cast<int>(limits::kMessageBytesMax));
    stub_ = DispatchService::NewStub(MakeChannel(server, arguments));
  }

  absl::Status Register(const internal::v1::RegisterWorkerRequest& request, absl::Duration timeout,
                        internal::v1::RegisterWorkerResponse* response) override {
    grpc::ClientContext context;
    SetDeadline(timeout, &context);
    return FromGrpc(stub_->RegisterWorker(&context, request, response));
  }

  absl::Status Acquire(const internal::v1::AcquireLeaseRequest& request, absl::Duration timeout,
                       internal::v1::AcquireLeaseResponse* response) override {
    grpc::ClientContext context;
    SetDeadline(timeout, &context);
    {
      absl::MutexLock lock(&mutex_);
      if (cancelled_) return absl::CancelledError("draining");
      acquiring_ = &context;
    }
    const grpc::Status status = stub_->AcquireLease(&context, request, response);
    absl::MutexLock lock(&mutex_);
    acquiring_ = nullptr;
    return FromGrpc(status);
  }

  absl::Status Renew(const internal::v1::RenewLeaseRequest& request, absl::Duration timeout,
                     internal::v1::RenewLeaseResponse* response) override {
    grpc::ClientContext context;
    SetDeadline(timeout, &context);
    return FromGrpc(stub_->RenewLease(&context, request, response));
  }

  absl::Status Complete(const internal::v1::CompleteLeaseRequest& request, absl::Duration timeout,
                        internal::v1::CompleteLeaseResponse* response) override {
    grpc::ClientContext context;
    SetDeadline(timeout, &context);
    return FromGrpc(stub_->CompleteLease(&context, request, response));
  }

  absl::Status Abandon(const internal::v1::AbandonLeaseRequest& request,
                       absl::Duration timeout) override {
    grpc::ClientContext context;
    SetDeadline(timeout, &context);
    internal::v1::AbandonLeaseResponse response;
    return FromGrpc(stub_->AbandonLease(&context, request, &response));
  }

  void CancelAcquire() override {
    absl::MutexLock lock(&mutex_);
    cancelled_ = true;
    if (acquiring_ != nullptr) acquiring_->TryCancel();
  }

 private:
  std::unique_ptr<DispatchService::Stub> stub_;
  absl::Mutex mutex_;
  grpc::ClientContext* acquiring_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

std::unique_ptr<DispatchTransport> MakeGrpcTransport(const Endpoint& server) {
  return std::make_unique<GrpcTransport>(server);
}

}  // namespace assay
