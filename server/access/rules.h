// Which scope each method of the API needs. One table for all services; a test holds it against
// their descriptors. Pure; thread-safe.
#ifndef ASSAY_SERVER_ACCESS_RULES_H_
#define ASSAY_SERVER_ACCESS_RULES_H_

#include <string_view>

#include "absl/types/span.h"

namespace assay {

enum class AccessScope { kRead, kSubmit, kAdmin, kWork };

struct AccessRule {
  const char* service;  // "assay.v1.ProblemService"
  const char* method;   // "GetProblem"; no two services have one of the same name
  AccessScope scope;
};

absl::Span<const AccessRule> AccessRules();

// Null for an unknown method, which nobody may call.
const AccessRule* FindAccessRule(std::string_view method);

// "READ".
const char* AccessScopeName(AccessScope scope);

}  // namespace assay

#endif  // ASSAY_SERVER_ACCESS_RULES_H_
