#include "base/channel.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/client_interceptor.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/address.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/status.h"

namespace assay {
namespace {

namespace experimental = grpc::experimental;

// Adds the token to the metadata of every call. gRPC's own way, credentials of calls, does not work
// without TLS, and on loopback there is none.
class TokenInterceptor : public experimental::Interceptor {
 public:
  explicit TokenInterceptor(std::string authorization) : authorization_(std::move(authorization)) {}

  void Intercept(experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(
            experimental::InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) {
      methods->GetSendInitialMetadata()->emplace("authorization", authorization_);
    }
    methods->Proceed();
  }

 private:
  const std::string authorization_;
};

class TokenInterceptorFactory : public experimental::ClientInterceptorFactoryInterface {
 public:
  explicit TokenInterceptorFactory(std::string_view token)
      : authorization_(absl::StrCat("Bearer ", std::string(token))) {}
  experimental::Interceptor* CreateClientInterceptor(experimental::ClientRpcInfo*) override {
    return new TokenInterceptor(authorization_);
  }

 private:
  const std::string authorization_;
};

absl::StatusOr<std::string> Read(const std::string& flag, const std::string& path) {
  if (path.empty()) return std::string();
  auto text = ReadFile(path, limits::kPemBytesMax);
  if (text.ok()) return text;
  const absl::Status status = Annotate(text.status(), flag);
  return absl::IsNotFound(status)
             ? ErrorWithReason(status.code(), "PATH_NOT_FOUND", std::string(status.message()))
             : status;
}

bool IsSecret(const std::string& text) {
  return !text.empty() && text.size() <= limits::kTokenBytesMax &&
         std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return absl::ascii_isgraph(c); });
}

}  // namespace

absl::StatusOr<Endpoint> ReadEndpoint(std::string_view address, const ChannelFiles& files,
                                      std::string_view token) {
  Endpoint endpoint;
  endpoint.address = address;
  if (files.certificate.empty() != files.key.empty()) {
    return absl::InvalidArgumentError("--tls-cert and --tls-key go together");
  }
  if (!files.certificate.empty() && files.ca.empty()) {
    return absl::InvalidArgumentError(
        "--tls-cert needs --tls-ca: the authority that vouches for the server");
  }
  ASSAY_ASSIGN_OR_RETURN(endpoint.ca_pem, Read("--tls-ca", files.ca));
  ASSAY_ASSIGN_OR_RETURN(endpoint.certificate_pem, Read("--tls-cert", files.certificate));
  ASSAY_ASSIGN_OR_RETURN(endpoint.key_pem, Read("--tls-key", files.key));
  // gRPC takes an empty one for "those of the system".
  if (!files.ca.empty() && endpoint.ca_pem.find("BEGIN CERTIFICATE") == std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("--tls-ca: ", files.ca, " holds no certificate in PEM"));
  }
  endpoint.token = token;
  if (!files.token.empty()) {
    ASSAY_ASSIGN_OR_RETURN(endpoint.token, Read("--token-file", files.token));
    absl::StripAsciiWhitespace(&endpoint.token);
  }
  const bool has_token = !files.token.empty() || !token.empty();
  if (has_token && !IsSecret(endpoint.token)) {
    return absl::InvalidArgumentError(absl::StrCat(
        files.token.empty() ? "ASSAY_TOKEN" : absl::StrCat("--token-file: ", files.token),
        " holds no secret: one word of printable ASCII, at most ", limits::kTokenBytesMax,
        " characters"));
  }
  if (has_token && files.ca.empty() && !IsLoopback(address)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the token would go to ", endpoint.address,
        " in the clear; give --tls-ca FILE (or ASSAY_TLS_CA), or leave the token out"));
  }
  return endpoint;
}

std::shared_ptr<grpc::Channel> MakeChannel(const Endpoint& endpoint,
                                           const grpc::ChannelArguments& arguments) {
  std::shared_ptr<grpc::ChannelCredentials> credentials;
  if (endpoint.ca_pem.empty()) {
    credentials = grpc::InsecureChannelCredentials();
  } else {
    grpc::SslCredentialsOptions tls;
    tls.pem_root_certs = endpoint.ca_pem;
    tls.pem_cert_chain = endpoint.certificate_pem;
    tls.pem_private_key = endpoint.key_pem;
    credentials = grpc::SslCredentials(tls);
  }
  std::vector<std::unique_ptr<experimental::ClientInterceptorFactoryInterface>> interceptors;
  if (!endpoint.token.empty()) {
    interceptors.push_back(std::make_unique<TokenInterceptorFactory>(endpoint.token));
  }
  return experimental::CreateCustomChannelWithInterceptors(endpoint.address, credentials, arguments,
                                                           std::move(interceptors));
}

}  // namespace assay
