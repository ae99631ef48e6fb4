// Whose fault a failed compilation is, and what it is called. Pure but for the question to the
// machine.
#ifndef ASSAY_WORKER_BUILDER_COMPILE_FAILURE_H_
#define ASSAY_WORKER_BUILDER_COMPILE_FAILURE_H_

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/builder/builder.h"
#include "worker/builder/compile_run.h"
#include "worker/builder/diagnostics.h"

namespace assay {

// `run` gave no artifact; `diagnostics` are those of its log, which `classify` names when nothing
// else explains the failure. A bad status when the machine is to blame. `check_machine` compiles a
// known-good source in the same way; it is asked where the run alone leaves the question open, and
// its bad status is the answer.
absl::StatusOr<CompileFailure> JudgeFailure(const CompileRunResult& run,
                                            const std::vector<BuildDiagnostic>& diagnostics,
                                            const CompileLimits& compile_limits,
                                            const std::function<absl::Status()>& check_machine,
                                            const std::function<CompileFailure()>& classify);

}  // namespace assay

#endif  // ASSAY_WORKER_BUILDER_COMPILE_FAILURE_H_
