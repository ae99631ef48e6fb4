#include "server/access/call_facts.h"

#include <grpcpp/grpcpp.h>

#include <utility>

namespace assay {
namespace {

constexpr char kAuthorization[] = "authorization";
// What no secret is: several values leave open which one is meant.
constexpr char kAmbiguous[] = "several";

std::string Authorization(const grpc::ServerContextBase& context) {
  const auto [first, last] = context.client_metadata().equal_range(kAuthorization);
  if (first == last) return "";
  if (std::next(first) != last) return kAmbiguous;
  return std::string(first->second.data(), first->second.size());
}

}  // namespace

std::shared_ptr<CallAccess> BeginCall(AccessControl* access, const grpc::ServerContextBase& context,
                                      std::string_view method, std::string_view resource) {
  if (access == nullptr || access->IsOpen(method)) return nullptr;
  CallFacts facts;
  facts.method = method;
  facts.authorization = Authorization(context);
  facts.peer = context.peer();
  const auto transport = context.auth_context();
  // Set by TLS alone, and only for a certificate that the handshake verified.
  facts.has_certificate = transport != nullptr && transport->IsPeerAuthenticated();
  return access->Begin(facts, resource);
}

void EndCall(AccessControl* access, const CallAccess* call, absl::StatusCode code,
             AccessAnswer answer) {
  if (access == nullptr || call == nullptr) return answer(absl::OkStatus());
  access->End(*call, code, std::move(answer));
}

}  // namespace assay
