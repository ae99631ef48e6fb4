#include "worker/builder/compile_failure.h"

#include <signal.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "base/status.h"
#include "worker/sandbox/limit.h"

namespace assay {
namespace {

constexpr int kExitKilled = 128 + SIGKILL;

std::string Mebibytes(int64_t bytes) { return absl::StrCat(bytes >> 20, " MiB"); }

CompileFailure MemoryFailure(const CompileLimits& limits) {
  return {"COMPILE_MEMORY", absl::StrCat("the compiler used more than its limit of ",
                                         Mebibytes(limits.memory_bytes_max), " of memory")};
}

// Its reason is that of no other limit, and of no ordinary failure.
CompileFailure LimitFailure(SandboxLimit limit, const CompileLimits& compile_limits) {
  switch (limit) {
    case SandboxLimit::kNone:
      break;
    case SandboxLimit::kMemory:
      return MemoryFailure(compile_limits);
    case SandboxLimit::kProcesses:
      return {"COMPILE_PROCESSES", absl::StrCat("the compiler started more than its limit of ",
                                                kCompileProcessesMax, " processes")};
    case SandboxLimit::kTime:
      return {"COMPILE_TIMEOUT", absl::StrCat("the compiler did not end within its limit of ",
                                              absl::ToDoubleSeconds(compile_limits.timeout), " s")};
    case SandboxLimit::kCpu:
      return {"COMPILE_CPU",
              absl::StrCat("the compiler used more than its limit of ",
                           absl::ToDoubleSeconds(compile_limits.timeout + kCompileCpuBeyond),
                           " s of CPU time")};
    case SandboxLimit::kOutput:
      return {"COMPILE_OUTPUT_FLOOD", absl::StrCat("the compiler printed more than its limit of ",
                                                   Mebibytes(limits::kCompilerOutputBytesMax))};
    case SandboxLimit::kFileSize:
      return {"COMPILE_FILE_SIZE", absl::StrCat("the compiler wrote a file beyond its limit of ",
                                                Mebibytes(kCompileFileBytesMax))};
    case SandboxLimit::kArtifactSize:
      return {"ARTIFACT_TOO_LARGE",
              absl::StrCat("the compiled candidate is larger than its limit of ",
                           Mebibytes(limits::kArtifactBytesMax))};
  }
  return {};
}

}  // namespace

absl::StatusOr<CompileFailure> JudgeFailure(const CompileRunResult& run,
                                            const std::vector<BuildDiagnostic>& diagnostics,
                                            const CompileLimits& compile_limits,
                                            const std::function<absl::Status()>& check_machine,
                                            const std::function<CompileFailure()>& classify) {
  const bool explained = ExplainedBySources(diagnostics);
  LimitEvidence evidence{run.exit, run.timed_out, run.log_flood, run.artifact_too_large};
  // Where the sources explain the failure, the log's last words are theirs.
  if (!explained) evidence.inner_signal = SignalOfTool(run.log);
  const SandboxLimit limit = ClassifyLimit(evidence);
  if (run.exit.machine_oom && limit != SandboxLimit::kMemory) {
    return absl::UnavailableError("the machine ran out of memory while compiling");
  }
  if (limit != SandboxLimit::kNone) {
    // A machine that is merely slow or starved must not be taken for a bad source.
    if (limit == SandboxLimit::kTime || limit == SandboxLimit::kCpu) {
      ASSAY_RETURN_IF_ERROR(check_machine());
    }
    return LimitFailure(limit, compile_limits);
  }
  if (!explained || MentionsMachine(run.log)) {
    ASSAY_RETURN_IF_ERROR(check_machine());
  }
  if (!explained) {
    if (run.exit.code == kExitKilled || evidence.inner_signal == SIGKILL) {
      return absl::UnavailableError("the compiler was killed by the machine");
    }
    // Without a control group each process has a limit of its own, and says so.
    if (MentionsMemory(run.log)) return MemoryFailure(compile_limits);
  }
  return classify();
}

}  // namespace assay
