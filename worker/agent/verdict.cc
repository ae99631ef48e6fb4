#include "worker/agent/verdict.h"

#include <algorithm>
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "assay/internal/v1/runner.pb.h"
#include "assay/v1/evaluation.pb.h"
#include "base/limits.h"
#include "base/strings.h"

namespace assay {
namespace {

using internal::v1::GuestFault;

constexpr int kErrorsInMessage = 3;

struct FaultRow {
  GuestFault::Kind kind;
  v1::Verdict verdict;
  const char* reason;
  const char* what;
};
constexpr FaultRow kFaults[] = {
    {GuestFault::LOAD_FAILED, v1::RUNTIME_ERROR, "LOAD_FAILED", "the candidate cannot be loaded"},
    {GuestFault::SIGNAL, v1::RUNTIME_ERROR, "CRASHED", "the candidate crashed"},
    {GuestFault::EXITED, v1::RUNTIME_ERROR, "EXITED", "the candidate ended its process"},
    {GuestFault::FORBIDDEN_SYSCALL, v1::RUNTIME_ERROR, "FORBIDDEN_SYSCALL",
     "the candidate made a forbidden system call"},
    {GuestFault::PROCESS_CREATION, v1::RUNTIME_ERROR, "PROCESS_CREATION",
     "the candidate tried to start a process"},
    {GuestFault::TIMED_OUT, v1::TIMED_OUT, "TIMED_OUT", "a call did not end in time"},
    {GuestFault::OUT_OF_BOUNDS, v1::UNDEFINED_BEHAVIOR, "OUT_OF_BOUNDS",
     "the candidate touched memory outside its tensors"},
    {GuestFault::INPUT_WRITTEN, v1::UNDEFINED_BEHAVIOR, "INPUT_WRITTEN",
     "the candidate wrote into an input"},
    {GuestFault::CANARY_BROKEN, v1::UNDEFINED_BEHAVIOR, "CANARY_BROKEN",
     "the candidate wrote past the end of an output"},
    {GuestFault::MEMORY_LIMIT, v1::RESOURCE_EXCEEDED, "MEMORY_LIMIT",
     "the candidate used more memory than it may"},
    {GuestFault::OUTPUT_FLOOD, v1::RESOURCE_EXCEEDED, "OUTPUT_FLOOD",
     "the candidate printed more than it may"},
    {GuestFault::HIDDEN_WORK, v1::GAMED, "HIDDEN_WORK",
     "the candidate worked outside of the timed call"},
    {GuestFault::PLAN_INVALID, v1::COMPILE_ERROR, "PLAN_INVALID", "the launch plan does not fit"},
    {GuestFault::NOT_EMULATED, v1::UNSUPPORTED, "NOT_EMULATED",
     "the emulated device does not run this"},
    {GuestFault::DEVICE_FAULT, v1::UNDEFINED_BEHAVIOR, "DEVICE_FAULT",
     "a check of the device proved undefined behavior"},
    {GuestFault::DEVICE_TRAP, v1::RUNTIME_ERROR, "DEVICE_TRAP", "the kernel ended with an error"},
    {GuestFault::DRIVER_TOO_OLD, v1::UNSUPPORTED, "DRIVER_TOO_OLD",
     "this worker's device cannot load the candidate"},
};

bool IsLimit(const std::string& reason) {
  for (const char* limit : {"COMPILE_MEMORY", "COMPILE_PROCESSES", "COMPILE_TIMEOUT", "COMPILE_CPU",
                            "COMPILE_OUTPUT_FLOOD", "COMPILE_FILE_SIZE", "ARTIFACT_TOO_LARGE"}) {
    if (reason == limit) return true;
  }
  return false;
}

std::string Micros(double ns) { return absl::StrFormat("%.3g us", ns / 1e3); }

}  // namespace

void FillBuildReport(const BuildResult& result, std::string_view compiler,
                     v1::BuildReport* report) {
  report->set_from_cache(result.from_cache);
  const int64_t ns = absl::ToInt64Nanoseconds(result.duration);
  report->mutable_duration()->set_seconds(ns / 1'000'000'000);
  report->mutable_duration()->set_nanos(static_cast<int32_t>(ns % 1'000'000'000));
  report->set_compiler(std::string(compiler));
  for (const std::string& argument : result.arguments) report->add_options(argument);
  for (const BuildDiagnostic& from : result.diagnostics) {
    if (report->diagnostics_size() >= static_cast<int>(limits::kDiagnosticsMax)) break;
    v1::Diagnostic& to = *report->add_diagnostics();
    to.set_severity(static_cast<v1::Diagnostic::Severity>(from.severity));
    to.set_file(from.file);
    to.set_line(from.line);
    to.set_column(from.column);
    to.set_message(from.message);
  }
  report->set_log(result.log);
  report->set_artifact_digest(result.artifact_digest);
}

void SetBuildVerdict(const BuildResult& result, v1::Outcome* outcome) {
  outcome->set_verdict(IsLimit(result.reason) ? v1::RESOURCE_EXCEEDED : v1::COMPILE_ERROR);
  outcome->set_reason(result.reason);
  if (!result.message.empty()) {
    outcome->set_message(absl::StrCat("the build failed: ", result.message));
    return;
  }
  std::vector<std::string> errors;
  for (const BuildDiagnostic& diagnostic : result.diagnostics) {
    if (diagnostic.severity != v1::Diagnostic::ERROR) continue;
    if (static_cast<int>(errors.size()) == kErrorsInMessage) break;
    errors.push_back(diagnostic.file.empty()
                         ? diagnostic.message
                         : absl::StrCat(diagnostic.file, ":", diagnostic.line, ":",
                                        diagnostic.column, ": ", diagnostic.message));
  }
  outcome->set_message(errors.empty()
                           ? absl::StrCat("the build failed: ", result.reason)
                           : absl::StrCat("the build failed: ", absl::StrJoin(errors, "; ")));
}

void SetFaultVerdict(const GuestFault& fault, v1::Outcome* outcome) {
  outcome->set_verdict(v1::RUNTIME_ERROR);
  outcome->set_reason("UNKNOWN_FAULT");
  std::string message = "the candidate's process ended";
  for (const FaultRow& row : kFaults) {
    if (row.kind != fault.kind()) continue;
    outcome->set_verdict(row.verdict);
    outcome->set_reason(row.reason);
    message = row.what;
  }
  // What was found has a name of its own.
  if ((fault.kind() == GuestFault::DEVICE_FAULT || fault.kind() == GuestFault::PLAN_INVALID) &&
      !fault.check().empty()) {
    outcome->set_reason(fault.check());
    if (fault.check() == "PLAN_OVER_LIMIT") outcome->set_verdict(v1::RESOURCE_EXCEEDED);
  }
  if (!fault.message().empty()) absl::StrAppend(&message, ": ", fault.message());
  if (!fault.tensor().empty()) {
    absl::StrAppend(&message, " (tensor ", fault.tensor(), ", byte ", fault.byte_offset(),
                    " from its start)");
  }
  if (!fault.workload().empty()) absl::StrAppend(&message, " in workload ", fault.workload());
  if (!fault.input_case().empty()) absl::StrAppend(&message, ", input case ", fault.input_case());
  outcome->set_message(message);
}

std::string DescribeMismatch(const internal::v1::RunnerWorkloadReport& report) {
  const v1::Verification& verification = report.verification();
  if (!verification.has_first_mismatch()) return "";
  const v1::Mismatch& mismatch = verification.first_mismatch();
  std::string text;
  if (mismatch.index().empty()) {
    text = absl::StrCat(mismatch.tensor(), " is wrong as a whole (no single element is)");
  } else {
    text = absl::StrFormat("%s[%s] is %.9g, expected %.9g", mismatch.tensor(),
                           absl::StrJoin(mismatch.index(), ","), mismatch.got(), mismatch.want());
    if (mismatch.error() != 0) {
      absl::StrAppendFormat(&text, " (error %.3g in units of |want| + scale)", mismatch.error());
    }
  }
  for (const v1::OutputCheck& check : verification.outputs()) {
    if (check.tensor() != mismatch.tensor()) continue;
    absl::StrAppendFormat(
        &text, "; %d of %d elements wrong, %d not written, relative L2 error %.3g",
        check.wrong_count(), check.element_count(), check.unwritten_count(), check.relative_l2());
  }
  return text;
}

void SetWrongVerdict(const internal::v1::RunnerWorkloadReport& report, v1::Outcome* outcome) {
  outcome->set_verdict(report.nondeterministic() ? v1::NONDETERMINISTIC : v1::INCORRECT);
  outcome->set_reason(report.reason().empty() ? "MISMATCH" : report.reason());
  const v1::Verification& verification = report.verification();
  const auto& cases = verification.cases();
  const bool is_case =
      std::find(cases.begin(), cases.end(), verification.failed_case()) != cases.end();
  std::string message = absl::StrCat(
      report.nondeterministic() ? "right and wrong output for the same input" : "wrong output",
      " in workload ", report.workload(), ", ", is_case ? "input case " : "",
      verification.failed_case());
  const std::string mismatch = DescribeMismatch(report);
  if (!mismatch.empty()) absl::StrAppend(&message, ": ", mismatch);
  outcome->set_message(message);
}

void SetInvalidProblem(std::string_view reason, std::string_view message, v1::Outcome* outcome) {
  outcome->set_verdict(v1::INVALID_PROBLEM);
  outcome->set_reason(std::string(reason));
  outcome->set_message(absl::StrCat("the ", reason == "BASELINE_FAILED" ? "baseline" : "problem",
                                    " is at fault, not the candidate: ", Av(message)));
}

void SetPassed(const std::vector<std::string>& missing_baselines, v1::Outcome* outcome) {
  outcome->set_verdict(v1::PASSED);
  outcome->set_reason("PASSED");
  std::vector<std::string> lines;
  for (const v1::WorkloadResult& result : outcome->workload_results()) {
    if (!result.has_measurement()) continue;
    std::string line =
        absl::StrCat(result.workload(), ": ", Micros(result.measurement().median_ns()), " median");
    if (result.has_ceiling()) {
      absl::StrAppendFormat(&line, ", %.0f %% of the %s bound of %s (%s)",
                            100 * result.efficiency_ratio(),
                            v1::Ceiling::Bound_Name(result.ceiling().bound()),
                            Micros(result.ceiling().time_ns()), result.ceiling().basis());
    }
    for (const v1::BaselineResult& baseline : result.baselines()) {
      absl::StrAppendFormat(&line, ", %.2fx %s", baseline.speedup_ratio(), baseline.name());
    }
    lines.push_back(std::move(line));
  }
  for (const std::string& baseline : missing_baselines) {
    lines.push_back(absl::StrCat("baseline ", baseline, " is not available on this worker"));
  }
  outcome->set_message(lines.empty() ? "every output was right" : absl::StrJoin(lines, "; "));
}

}  // namespace assay
