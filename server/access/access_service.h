// AccessService of the public API: tokens and the log of access (callback API: handlers validate
// and enqueue, never block).
#ifndef ASSAY_SERVER_ACCESS_ACCESS_SERVICE_H_
#define ASSAY_SERVER_ACCESS_ACCESS_SERVICE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/services/context.h"

namespace assay {

// Thread-safe. Includers that destroy it need <grpcpp/impl/service_type.h>.
std::unique_ptr<grpc::Service> MakeAccessService(const ServiceContext& context);

// The first token: stores tokens/{name} with scope ADMIN and returns its secret. Blocks; for a
// store that no server uses. Errors as of CreateToken.
absl::StatusOr<std::string> CreateAdminToken(const std::string& name, Clock* clock, Store* store);

}  // namespace assay

#endif  // ASSAY_SERVER_ACCESS_ACCESS_SERVICE_H_
