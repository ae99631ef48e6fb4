// What a gate says: the decision on a finished PAIRED evaluation, its exit code, and the summary in
// Markdown. Pure.
#ifndef ASSAY_CLIENT_CLI_GATE_REPORT_H_
#define ASSAY_CLIENT_CLI_GATE_REPORT_H_

#include <string>
#include <string_view>

#include "assay/v1/evaluation.pb.h"
#include "assay/v1/gate.pb.h"
#include "server/gate/gate.h"

namespace assay {

// Decides on the pairs of `evaluation`, which is SUCCEEDED, and fills everything of the report but
// `evaluations`. `baseline` is what the user calls the baseline, for the explanation. A decision
// other than PASS and REGRESSION always has an explanation.
void DecideReport(const GateOptions& options, const v1::Evaluation& evaluation,
                  std::string_view baseline, v1::GateReport* report);

// For a comment on a pull request. Text of candidates and compilers stands in code, where it has no
// effect.
std::string GateMarkdown(const v1::GateReport& report);

// 0 PASS, 1 REGRESSION, 3 INCONCLUSIVE, 4 ENVIRONMENT_INVALID, 5 NOT_CORRECT; 2 when baseline or
// problem are at fault.
int ExitCodeOf(const v1::GateReport& report);

}  // namespace assay

#endif  // ASSAY_CLIENT_CLI_GATE_REPORT_H_
