#include "client/cli/report.h"

#include <iterator>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/strings.h"
#include "base/text.h"
#include "client/cli/exit_code.h"
#include "client/cli/output.h"

namespace assay {
namespace {

// "gelu" of "problems/gelu".
std::string LastPart(const std::string& name) { return name.substr(name.rfind('/') + 1); }

std::string VerdictText(const v1::Evaluation& evaluation) {
  if (evaluation.state() != v1::SUCCEEDED) {
    return Paint(v1::State_Name(evaluation.state()),
                 evaluation.state() == v1::FAILED ? Color::kRed : Color::kYellow);
  }
  const v1::Verdict verdict = evaluation.outcome().verdict();
  return Paint(v1::Verdict_Name(verdict), verdict == v1::PASSED ? Color::kGreen : Color::kRed);
}

// A header full of warnings must not bury the verdict.
constexpr int kErrorsShown = 10;
constexpr int kWarningsShown = 3;

std::string Indent(const std::string& text, const std::string& by) {
  std::string out;
  size_t start = 0;
  while (start < text.size()) {
    size_t end = text.find('\n', start);
    if (end == std::string::npos) end = text.size();
    absl::StrAppend(&out, by, text.substr(start, end - start), "\n");
    start = end + 1;
  }
  return out;
}

// Text of others within a report. What follows a line break stands deeper than any line of the
// report itself, so that it passes for none.
std::string Hang(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  return absl::StrReplaceAll(Printable(text), {{"\n", "\n      "}});
}

// "a.cc:3:7: ", of which only what is known: an error of a linker has no place.
std::string Place(const v1::Diagnostic& diagnostic) {
  std::string place = PrintableLine(diagnostic.file());
  if (diagnostic.line() > 0) {
    absl::StrAppend(&place, place.empty() ? "line " : ":", diagnostic.line());
    if (diagnostic.column() > 0) absl::StrAppend(&place, ":", diagnostic.column());
  }
  return place.empty() ? "" : place + ": ";
}

void AppendBuild(const v1::BuildReport& build, std::string* out) {
  int errors = 0;
  int others = 0;
  int left_out = 0;
  for (const v1::Diagnostic& diagnostic : build.diagnostics()) {
    const bool is_error = diagnostic.severity() == v1::Diagnostic::ERROR;
    if (is_error ? ++errors > kErrorsShown : ++others > kWarningsShown) {
      ++left_out;
      continue;
    }
    absl::StrAppend(out, "  ", Place(diagnostic),
                    v1::Diagnostic::Severity_Name(diagnostic.severity()), ": ",
                    Hang(diagnostic.message()), "\n");
  }
  if (left_out > 0) {
    absl::StrAppend(out, "  and ", left_out, " more diagnostics; --json shows them all\n");
  }
}

std::string IndexText(const v1::Mismatch& mismatch) {
  return absl::StrCat(mismatch.tensor(), "[", absl::StrJoin(mismatch.index(), ","), "]");
}

void AppendVerification(const v1::WorkloadResult& result, std::string* out) {
  const v1::Verification& verification = result.verification();
  if (verification.passed() || verification.outputs_size() == 0) return;
  absl::StrAppend(out, "  ", result.workload(), ": wrong");
  if (!verification.failed_case().empty()) {
    absl::StrAppend(out, " for inputs '", PrintableLine(verification.failed_case()), "'");
  }
  if (verification.has_first_mismatch()) {
    const v1::Mismatch& mismatch = verification.first_mismatch();
    absl::StrAppend(out, absl::StrFormat("; first at %s: got %.9g, want %.9g", IndexText(mismatch),
                                         mismatch.got(), mismatch.want()));
  }
  *out += '\n';
  for (const v1::OutputCheck& check : verification.outputs()) {
    absl::StrAppend(
        out,
        absl::StrFormat("    %s: %d of %d elements wrong, %d not written, relative "
                        "L2 error %.3g, worst element %.3g\n",
                        check.tensor(), check.wrong_count(), check.element_count(),
                        check.unwritten_count(), check.relative_l2(), check.element_error_max()));
  }
}

// Which bound holds and how far it is.
std::string GapText(const v1::WorkloadResult& result) {
  if (!result.has_ceiling()) return "";
  return absl::StrCat(v1::Ceiling::Bound_Name(result.ceiling().bound()), " bound, limit ",
                      FormatNanoseconds(result.ceiling().time_ns()));
}

// Why sampling ended, as a table's cell.
std::string StopText(v1::StopReason reason) {
  switch (reason) {
    case v1::CONVERGED:
      return "converged";
    case v1::TIME_LIMIT:
      return "time limit";
    case v1::SAMPLE_LIMIT:
      return "sample limit";
    default:
      return "-";
  }
}

// Where the times come from and what speaks against them.
std::string Provenance(const v1::Evaluation& evaluation) {
  std::set<std::string> caveats;
  bool measured = false;
  for (const v1::WorkloadResult& result : evaluation.outcome().workload_results()) {
    measured |= result.has_measurement();
    caveats.insert(result.measurement().caveats().begin(), result.measurement().caveats().end());
  }
  if (evaluation.worker().empty()) return "";
  return absl::StrCat(
      measured ? "measured on " : "judged on ", PrintableLine(evaluation.worker()),
      caveats.empty() ? "" : "; caveats: ", PrintableLine(absl::StrJoin(caveats, ", ")), "\n");
}

std::string MeasurementTable(const v1::Outcome& outcome) {
  std::vector<std::vector<std::string>> rows = {{"workload", "median", "spread", "cold", "samples",
                                                 "stopped", "of limit", "limit", "baseline"}};
  for (const v1::WorkloadResult& result : outcome.workload_results()) {
    if (!result.has_measurement()) continue;
    const v1::Measurement& measurement = result.measurement();
    std::string baselines;
    for (const v1::BaselineResult& baseline : result.baselines()) {
      absl::StrAppend(&baselines, baselines.empty() ? "" : ", ",
                      absl::StrFormat("%.2fx %s", baseline.speedup_ratio(), baseline.name()));
    }
    const double median = measurement.warm().median_ns();
    rows.push_back({result.workload(), FormatNanoseconds(measurement.median_ns()),
                    median > 0
                        ? absl::StrFormat("+-%.1f %%", 100 * measurement.warm().mad_ns() / median)
                        : "-",
                    FormatNanoseconds(measurement.cold().median_ns()),
                    absl::StrCat(measurement.sample_count()), StopText(measurement.stop_reason()),
                    FormatRatio(result.efficiency_ratio()), GapText(result), baselines});
  }
  return rows.size() > 1 ? FormatTable(rows, {1, 2, 3, 4, 6}) : "";
}

// "1.50x", and "-" where there is nothing to divide by.
std::string PerText(int64_t count, int64_t by, const char* unit) {
  if (by == 0) return "-";
  return absl::StrFormat("%.2f%s", static_cast<double>(count) / static_cast<double>(by), unit);
}

// "12.3 M".
std::string CountText(int64_t count) {
  constexpr const char* kUnits[] = {"", " k", " M", " G", " T"};
  auto value = static_cast<double>(count);
  size_t unit = 0;
  for (; value >= 1000 && unit + 1 < std::size(kUnits); ++unit) value /= 1000;
  return absl::StrFormat(unit == 0 ? "%.0f%s" : "%.1f%s", value, kUnits[unit]);
}

// What an emulated device counted, one line a workload.
std::string ObservedTable(const v1::Outcome& outcome) {
  std::vector<std::vector<std::string>> rows = {{"counted", "flop", "tensor", "global", "op/byte",
                                                 "declared", "sectors", "conflicts", "divergent",
                                                 "barriers"}};
  for (const v1::WorkloadResult& result : outcome.workload_results()) {
    if (!result.has_observed()) continue;
    const v1::ObservedWork& work = result.observed();
    rows.push_back(
        {result.workload(), CountText(work.f16_flops() + work.f32_flops() + work.f64_flops()),
         CountText(work.tensor_flops()),
         CountText(work.global_load_bytes() + work.global_store_bytes()) + "B",
         absl::StrFormat("%.3g", work.arithmetic_intensity()),
         work.declared_intensity() > 0 ? absl::StrFormat("%.3g", work.declared_intensity()) : "-",
         PerText(work.global_sectors(), work.global_sectors_least(), "x least"),
         PerText(work.shared_bank_conflicts(), work.shared_accesses(), "/access"),
         absl::StrCat(CountText(work.divergent_branches()), " of ", CountText(work.branches())),
         CountText(work.barriers())});
  }
  return rows.size() > 1 ? FormatTable(rows, {1, 2, 3, 4, 5, 6, 7, 8, 9}) : "";
}

}  // namespace

std::string CandidateTitle(const v1::Evaluation& evaluation) {
  const std::string label = evaluation.candidate_label().empty()
                                ? LastPart(evaluation.candidate()).substr(0, 8)
                                : PrintableLine(evaluation.candidate_label());
  return absl::StrCat(LastPart(evaluation.problem()), "/", label);
}

std::string EvaluationLine(const v1::Evaluation& evaluation) {
  std::string line = absl::StrCat(evaluation.name(), "  ", CandidateTitle(evaluation), "  ",
                                  VerdictText(evaluation));
  const v1::Outcome& outcome = evaluation.outcome();
  if (evaluation.state() == v1::SUCCEEDED && outcome.verdict() != v1::PASSED) {
    absl::StrAppend(&line, " ", outcome.reason());
  } else if (evaluation.state() == v1::FAILED) {
    absl::StrAppend(&line, " ", evaluation.infrastructure_error().reason(), ": ",
                    PrintableLine(evaluation.infrastructure_error().message()));
  } else if (!evaluation.waiting_reason().empty()) {
    absl::StrAppend(&line, " (waits: ", PrintableLine(evaluation.waiting_reason()), ")");
  } else if (!evaluation.stage().empty() && evaluation.state() == v1::RUNNING) {
    absl::StrAppend(&line, " ", evaluation.stage());
  }
  return line;
}

std::string EvaluationReport(const v1::Evaluation& evaluation) {
  std::string out = EvaluationLine(evaluation) + "\n";
  if (!evaluation.answered_by().empty()) {
    absl::StrAppend(&out, "  answered by the identical ", evaluation.answered_by(), "\n");
  }
  if (!evaluation.replay_of().empty()) {
    absl::StrAppend(&out, "  replays ", evaluation.replay_of(), "; never ranks\n");
  }
  if (!evaluation.confirms().empty()) {
    absl::StrAppend(&out, "  second run of ", evaluation.confirms(), "; does not rank itself\n");
  }
  const v1::Outcome& outcome = evaluation.outcome();
  // Of what passed only the notes that came after the verdict.
  const size_t notes = outcome.message().find('\n');
  if (outcome.verdict() != v1::PASSED && !outcome.message().empty()) {
    absl::StrAppend(&out, "  ", Hang(outcome.message()), "\n");
  } else if (notes != std::string::npos) {
    absl::StrAppend(&out, "  ", Hang(outcome.message().substr(notes + 1)), "\n");
  }
  AppendBuild(outcome.build(), &out);
  for (const v1::WorkloadResult& result : outcome.workload_results()) {
    AppendVerification(result, &out);
  }
  out += Indent(MeasurementTable(outcome), "  ");
  out += Indent(ObservedTable(outcome), "  ");
  if (evaluation.state() == v1::SUCCEEDED) out += Indent(Provenance(evaluation), "  ");
  for (const v1::Finding& finding : outcome.findings()) {
    absl::StrAppend(&out, "  finding ", PrintableLine(finding.detector()), " (",
                    v1::Finding::Severity_Name(finding.severity()), "): ", Hang(finding.evidence()),
                    "\n");
  }
  if (outcome.verdict() != v1::PASSED && !outcome.output_log().empty()) {
    absl::StrAppend(&out, "  output of the candidate:\n",
                    Indent(Printable(outcome.output_log().substr(0, 2000)), "    "));
  }
  return out;
}

int ExitCodeOf(const v1::Evaluation& evaluation) {
  if (evaluation.state() != v1::SUCCEEDED) return kExitError;
  switch (evaluation.outcome().verdict()) {
    case v1::PASSED:
      return kExitPassed;
    case v1::INVALID_PROBLEM:  // says nothing of the candidate
      return kExitError;
    default:
      return kExitNotPassed;
  }
}

}  // namespace assay
