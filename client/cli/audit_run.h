// The audit of a problem by the service that a command talks to.
#ifndef ASSAY_CLIENT_CLI_AUDIT_RUN_H_
#define ASSAY_CLIENT_CLI_AUDIT_RUN_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "assay/v1/problem.pb.h"
#include "client/cli/rpc.h"

namespace assay {

// `target` is a problem's folder, or the name of a stored problem; of a shipped one the honest
// candidates are at hand too. The stored problem must have the folder's content. Audits it, records
// the audit, and returns it. Blocks for a minute or two; UNAVAILABLE when no worker judges C++.
absl::StatusOr<v1::ProblemAudit> RunProblemAudit(Connection* connection, const std::string& target,
                                                 uint64_t seed);

// A table for people.
std::string AuditTable(const v1::ProblemAudit& audit);

// 0 admitted, 5 refused.
int ExitCodeOf(const v1::ProblemAudit& audit);

}  // namespace assay

#endif  // ASSAY_CLIENT_CLI_AUDIT_RUN_H_
