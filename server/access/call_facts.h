// From gRPC's view of a call to what access needs of it. Only for .cc files of services.
#ifndef ASSAY_SERVER_ACCESS_CALL_FACTS_H_
#define ASSAY_SERVER_ACCESS_CALL_FACTS_H_

#include <memory>
#include <string_view>

#include "server/access/access_control.h"

namespace grpc {
class ServerContextBase;
}

namespace assay {

// AccessControl::Begin for a call that has just arrived; null too when `access` is null, as in
// tests without tokens.
std::shared_ptr<CallAccess> BeginCall(AccessControl* access, const grpc::ServerContextBase& context,
                                      std::string_view method, std::string_view resource);

// AccessControl::End; `answer` at once and OK for null.
void EndCall(AccessControl* access, const CallAccess* call, absl::StatusCode code,
             AccessAnswer answer);

}  // namespace assay

#endif  // ASSAY_SERVER_ACCESS_CALL_FACTS_H_
