#include "server/grpc_status.h"

#include <grpcpp/support/status.h>

#include <string>

#include "assay/v1/evaluation.pb.h"
#include "base/status.h"

namespace assay {
namespace {

// Both copies of the message travel in the trailing metadata, which gRPC bounds (8 KiB).
constexpr size_t kMessageBytesMax = 2048;

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const std::string message(status.message().substr(0, kMessageBytesMax));
  v1::ErrorDetail detail;
  detail.set_code(absl::StatusCodeToString(status.code()));
  detail.set_reason(GetReason(status));
  detail.set_message(message);
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), message,
                      detail.SerializeAsString());
}

}  // namespace assay
