// The exit codes of the command line: a stable interface.
#ifndef ASSAY_CLIENT_CLI_EXIT_CODE_H_
#define ASSAY_CLIENT_CLI_EXIT_CODE_H_

namespace assay {

enum ExitCode : int {
  kExitPassed = 0,
  kExitRegression = 1,
  kExitError = 2,  // usage, problem or infrastructure
  kExitInconclusive = 3,
  kExitInvalidEnvironment = 4,
  kExitNotPassed = 5,  // the candidate was judged and did not pass
};

}  // namespace assay

#endif  // ASSAY_CLIENT_CLI_EXIT_CODE_H_
