// What a replay says of the evaluation that it repeated, as text for people.
#ifndef ASSAY_CLIENT_CLI_REPLAY_REPORT_H_
#define ASSAY_CLIENT_CLI_REPLAY_REPORT_H_

#include <string>
#include <vector>

#include "assay/v1/evaluation.pb.h"

namespace assay {

struct ReplayReport {
  // Verdict, reason and findings agree; findings by detector, severity, workload, file and line.
  bool same = false;
  // Where not, one line each, and the evidence of a finding that says something else: that may
  // hold times, which no replay repeats.
  std::vector<std::string> lines;
};

// Both have an outcome.
ReplayReport CompareReplay(const v1::Evaluation& original, const v1::Evaluation& replay);

// Several lines.
std::string ReplayText(const v1::Evaluation& original, const v1::Evaluation& replay,
                       const ReplayReport& report);

}  // namespace assay

#endif  // ASSAY_CLIENT_CLI_REPLAY_REPORT_H_
