#include "worker/builder/ptxas.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/strings.h"
#include "worker/builder/compile_run.h"
#include "worker/builder/cuda_diagnostics.h"
#include "worker/builder/forbidden_device_code.h"
#include "worker/sandbox/text.h"

namespace assay {
namespace {

constexpr char kPtxasInside[] = "/cuda/ptxas";
constexpr char kSource[] = "kernel.ptx";

// The digits of "sm_90a"; 0 when there are none.
int ArchitectureNumber(std::string_view architecture) {
  const size_t begin = architecture.find_first_of("0123456789");
  if (begin == architecture.npos) return 0;
  const size_t end =
      std::min(architecture.find_first_not_of("0123456789", begin), architecture.size());
  int number = 0;
  (void)absl::SimpleAtoi(Av(architecture.substr(begin, end - begin)), &number);
  return number;
}

// "sm_90a" of the line ".target sm_90a, debug"; empty when there is none.
std::string_view DeclaredTarget(std::string_view ptx) {
  constexpr std::string_view kTarget = ".target";
  for (size_t at = ptx.find(kTarget); at != ptx.npos; at = ptx.find(kTarget, at + 1)) {
    const size_t line = ptx.rfind('\n', at) + 1;
    if (ptx.substr(line, at - line).find_first_not_of(" \t\r") != ptx.npos && at != line) continue;
    std::string_view rest = ptx.substr(at + kTarget.size());
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
    const std::string_view name = rest.substr(0, rest.find_first_of(" \t\r\n,/"));
    const bool plain = name.size() < 16 && name.starts_with("sm_") &&
                       std::all_of(name.begin(), name.end(), [](char c) {
                         return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z');
                       });
    return plain ? name : std::string_view();
  }
  return {};
}

// Whether ptxas speaks of its own age or of another target, not of the program.
bool IsAboutVersions(std::string_view message) {
  return message.find(".version") != message.npos || message.find(".target") != message.npos ||
         message.find("SM version") != message.npos || message.find("gpu-name") != message.npos;
}

}  // namespace

std::string RealArchitecture(std::string_view virtual_architecture) {
  const size_t underscore = virtual_architecture.find('_');
  return absl::StrCat("sm_", Av(virtual_architecture.substr(
                                 underscore == virtual_architecture.npos ? 0 : underscore + 1)));
}

absl::StatusOr<Inspection> InspectPtx(const PtxasOptions& options, std::string_view ptx) {
  Inspection inspection;
  if (std::optional<ForbiddenDeviceCode> forbidden = FindForbiddenDeviceCode(ptx)) {
    inspection.refused = true;
    inspection.reason = std::move(forbidden->reason);
    inspection.diagnostics.push_back(std::move(forbidden->diagnostic));
    return inspection;
  }
  if (options.program.empty()) return inspection;
  std::string target = options.target;
  const std::string_view declared = DeclaredTarget(ptx);
  // Code for sm_90a runs on sm_90a alone, so a letter is taken as it is.
  const bool exact = !declared.empty() && declared.back() >= 'a';
  if (exact || ArchitectureNumber(declared) > ArchitectureNumber(target)) target = declared;
  CompileRunOptions run;
  run.arguments = {kPtxasInside, "-v", absl::StrCat("-arch=", target),
                   kSource,      "-o", kArtifactInside};
  run.files = {{kSource, std::string(ptx)}};
  run.read_only_binds = {{options.program, kPtxasInside}};
  run.want_artifact = false;
  run.slot = options.slot;
  run.timeout = options.compile_limits.timeout;
  run.memory_bytes_max = options.compile_limits.memory_bytes_max;
  const absl::StatusOr<CompileRunResult> result = RunCompiler(run);
  // Only an addition: without it the build is still good.
  if (!result.ok() || result->timed_out || result->log_flood || result->exit.memory_limit ||
      result->exit.machine_oom) {
    return inspection;
  }
  inspection.log = CleanText(result->log);
  if (result->exit.code == 0) {
    inspection.report = inspection.log;
    return inspection;
  }
  inspection.diagnostics = ParsePtxasDiagnostics(inspection.log);
  const bool about_versions = std::any_of(
      inspection.diagnostics.begin(), inspection.diagnostics.end(),
      [](const BuildDiagnostic& diagnostic) { return IsAboutVersions(diagnostic.message); });
  inspection.refused = ExplainedBySources(inspection.diagnostics) && !about_versions;
  return inspection;
}

}  // namespace assay
