// An evaluation as text for people: verdict, reason, diagnostics, first mismatch, times, the gap to
// the limit, and what the times rest on.
#ifndef ASSAY_CLIENT_CLI_REPORT_H_
#define ASSAY_CLIENT_CLI_REPORT_H_

#include <string>

#include "assay/v1/evaluation.pb.h"

namespace assay {

// One line: name, label, problem, state or verdict with reason.
std::string EvaluationLine(const v1::Evaluation& evaluation);

// The whole report, several lines.
std::string EvaluationReport(const v1::Evaluation& evaluation);

// 0 for PASSED, 2 for INVALID_PROBLEM and without a verdict (FAILED, CANCELLED), 5 for every other
// verdict.
int ExitCodeOf(const v1::Evaluation& evaluation);

// "softmax/avx2", "gelu/1f2e3d4c": problem and label, or the start of the candidate's digest.
std::string CandidateTitle(const v1::Evaluation& evaluation);

}  // namespace assay

#endif  // ASSAY_CLIENT_CLI_REPORT_H_
