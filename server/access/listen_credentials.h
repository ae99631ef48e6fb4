// What the server listens with: nothing, TLS, or TLS with certificates of clients.
#ifndef ASSAY_SERVER_ACCESS_LISTEN_CREDENTIALS_H_
#define ASSAY_SERVER_ACCESS_LISTEN_CREDENTIALS_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/options.h"

namespace grpc {
class ServerCredentials;
}

namespace assay {

// FAILED_PRECONDITION with reason INSECURE_LISTEN for an address beyond loopback without TLS,
// unless options.insecure_listen.
absl::Status CheckListen(const ServerOptions& options);

// Whether clients need tokens: when the operator says so, and beyond loopback always.
bool AreTokensRequired(const ServerOptions& options);

// Reads and checks the files. NOT_FOUND with reason PATH_NOT_FOUND; INVALID_ARGUMENT with reason
// TLS_INVALID for what is no certificate, no key, or a key of another certificate.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeListenCredentials(
    const ServerOptions& options);

}  // namespace assay

#endif  // ASSAY_SERVER_ACCESS_LISTEN_CREDENTIALS_H_
