// absl::Status on its way to a client.
#ifndef ASSAY_SERVER_GRPC_STATUS_H_
#define ASSAY_SERVER_GRPC_STATUS_H_

#include "absl/status/status.h"

namespace grpc {
class Status;
}

namespace assay {

// The same code, and the message as ASCII of at most 1 KiB. The details are what standard clients
// expect there, a serialized google.rpc.Status, and hold one assay.v1.ErrorDetail with code, reason
// and message.
grpc::Status ToGrpcStatus(const absl::Status& status);

}  // namespace assay

#endif  // ASSAY_SERVER_GRPC_STATUS_H_
