#include "worker/builder/compile_failure.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "base/status.h"

namespace assay {
namespace {

constexpr int kExitKilled = 128 + 9;

std::string Mebibytes(int64_t bytes) { return absl::StrCat(bytes >> 20, " MiB"); }

CompileFailure MemoryFailure(const CompileLimits& limits) {
  return {"COMPILE_MEMORY", absl::StrCat("the compiler used more than its limit of ",
                                         Mebibytes(limits.memory_bytes_max), " of memory")};
}

}  // namespace

absl::StatusOr<CompileFailure> JudgeFailure(const CompileRunResult& run,
                                            const std::vector<BuildDiagnostic>& diagnostics,
                                            const CompileLimits& compile_limits,
                                            const std::function<absl::Status()>& check_machine,
                                            const std::function<CompileFailure()>& classify) {
  if (run.exit.memory_limit) return MemoryFailure(compile_limits);
  if (run.exit.machine_oom) {
    return absl::UnavailableError("the machine ran out of memory while compiling");
  }
  if (run.timed_out) {
    // A machine that is merely slow or starved must not be taken for a bad source.
    ASSAY_RETURN_IF_ERROR(check_machine());
    return CompileFailure{"COMPILE_TIMEOUT",
                          absl::StrCat("the compiler did not end within its limit of ",
                                       absl::ToDoubleSeconds(compile_limits.timeout), " s")};
  }
  if (run.log_flood) {
    return CompileFailure{"COMPILE_OUTPUT_FLOOD",
                          absl::StrCat("the compiler printed more than its limit of ",
                                       Mebibytes(limits::kCompilerOutputBytesMax))};
  }
  if (run.artifact_too_large || absl::StrContains(run.log, "File size limit exceeded")) {
    return CompileFailure{"ARTIFACT_TOO_LARGE",
                          absl::StrCat("the compiled candidate is larger than its limit of ",
                                       Mebibytes(limits::kArtifactBytesMax))};
  }
  const bool explained = ExplainedBySources(diagnostics);
  if (!explained || MentionsMachine(run.log)) {
    ASSAY_RETURN_IF_ERROR(check_machine());
    if (!explained &&
        (run.exit.code == kExitKilled || absl::StrContains(run.log, "Killed signal terminated"))) {
      return absl::UnavailableError("the compiler was killed by the machine");
    }
    if (MentionsMemory(run.log)) return MemoryFailure(compile_limits);
  }
  return classify();
}

}  // namespace assay
