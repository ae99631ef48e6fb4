// What `submit` and `gate` share: a request made of a path and the common flags.
#ifndef ASSAY_CLIENT_CLI_SUBMISSION_H_
#define ASSAY_CLIENT_CLI_SUBMISSION_H_

#include <string>

#include "absl/status/statusor.h"
#include "assay/v1/evaluation.pb.h"
#include "client/cli/command.h"

namespace assay {

// Reads the candidate at `path` and the flags problem, workload, device, level, configuration,
// priority, request-id and stored-answer, as far as the command takes them.
absl::StatusOr<v1::CreateEvaluationRequest> MakeSubmission(const CommandContext& context,
                                                           const std::string& path);

}  // namespace assay

#endif  // ASSAY_CLIENT_CLI_SUBMISSION_H_
