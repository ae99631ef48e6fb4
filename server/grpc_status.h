// absl::Status on its way to a client.
#ifndef ASSAY_SERVER_GRPC_STATUS_H_
#define ASSAY_SERVER_GRPC_STATUS_H_

#include "absl/status/status.h"

namespace grpc {
class Status;
}

namespace assay {

// The same code and message; the details are a serialized assay.v1.ErrorDetail with code, reason
// and message.
grpc::Status ToGrpcStatus(const absl::Status& status);

}  // namespace assay

#endif  // ASSAY_SERVER_GRPC_STATUS_H_
