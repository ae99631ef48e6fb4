// What an audit says, for people. Pure functions.
#ifndef ASSAY_CLIENT_AUDIT_REPORT_H_
#define ASSAY_CLIENT_AUDIT_REPORT_H_

#include <string>

#include "assay/v1/problem.pb.h"

namespace assay {

// "passed", "failed" or "skipped".
std::string AuditStepResult(const v1::AuditStep& step);

// The committed form: AUDIT.md beside the problem. Says no time.
std::string AuditMarkdown(const v1::ProblemAudit& audit);

// The committed form for the server: audit.textproto beside the problem, without the time.
std::string AuditTextProto(const v1::ProblemAudit& audit);

}  // namespace assay

#endif  // ASSAY_CLIENT_AUDIT_REPORT_H_
