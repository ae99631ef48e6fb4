#include "client/cli/gate_report.h"

#include <algorithm>
#include <vector>

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

v1::GateReport::Decision ToProto(GateDecision decision) {
  switch (decision) {
    case GateDecision::kPass:
      return v1::GateReport::PASS;
    case GateDecision::kRegression:
      return v1::GateReport::REGRESSION;
    case GateDecision::kInconclusive:
      return v1::GateReport::INCONCLUSIVE;
  }
  return v1::GateReport::INCONCLUSIVE;
}

std::vector<GateWorkload> PairsOf(const v1::Outcome& outcome) {
  std::vector<GateWorkload> out;
  for (const v1::RunnerPair& pair : outcome.pairs()) {
    auto it = std::find_if(out.begin(), out.end(),
                           [&](const GateWorkload& w) { return w.workload == pair.workload(); });
    if (it == out.end()) it = out.insert(out.end(), {pair.workload(), {}});
    it->pairs.push_back({pair.baseline_ns(), pair.candidate_ns()});
  }
  return out;
}

bool Disturbed(const v1::Outcome& outcome) {
  for (const v1::WorkloadResult& result : outcome.workload_results()) {
    for (const std::string& caveat : result.measurement().caveats()) {
      if (caveat == "NOISY_ENVIRONMENT") return true;
    }
  }
  return false;
}

// Nothing was compared: who is at fault?
void SetFault(const v1::Outcome& outcome, std::string_view baseline, v1::GateReport* report) {
  std::string text = absl::StrCat(v1::Verdict_Name(outcome.verdict()), " ", outcome.reason(), ": ",
                                  outcome.message());
  if (outcome.verdict() != v1::INVALID_PROBLEM) {
    report->set_decision(v1::GateReport::NOT_CORRECT);
  } else if (outcome.reason() == "BASELINE_FAILED") {
    report->set_decision(v1::GateReport::BASELINE_INVALID);
    text = absl::StrCat("the baseline ", Av(baseline),
                        " is at fault, not the candidate: ", outcome.reason(), ": ",
                        outcome.message());
  } else {
    report->set_decision(v1::GateReport::PROBLEM_INVALID);
  }
  report->set_explanation(text);
}

void SetWorkloads(const GateResult& result, v1::GateReport* report) {
  for (const GateWorkloadResult& from : result.workloads) {
    v1::GateReport::Workload* to = report->add_workloads();
    to->set_workload(from.workload);
    to->set_decision(ToProto(from.decision));
    to->set_explanation(from.explanation);
    to->set_pair_count(from.pair_count);
    to->set_dropped_pair_count(from.dropped_count);
    to->set_ratio(from.ratio);
    to->set_ratio_low(from.ratio_low);
    to->set_ratio_high(from.ratio_high);
    to->set_confidence_ratio(from.confidence);
    to->set_minimum_detectable_effect_ratio(from.minimum_detectable_effect);
  }
}

std::string WhyUndecided(const v1::GateReport& report) {
  std::vector<std::string> undecided;
  for (const v1::GateReport::Workload& workload : report.workloads()) {
    if (workload.decision() == v1::GateReport::INCONCLUSIVE) {
      undecided.push_back(workload.workload());
    }
  }
  return undecided.empty() ? "no workload was measured"
                           : absl::StrCat("not decided: ", absl::StrJoin(undecided, ", "));
}

// The longest run of backticks.
size_t LongestFence(std::string_view text) {
  size_t longest = 0;
  size_t run = 0;
  for (const char c : text) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return longest;
}

// One line of code, in which neither HTML nor links nor mentions work. A bar would end a table's
// cell even there, and no escape of it is safe after a backslash.
std::string Code(std::string_view text) {
  const std::string line =
      absl::StrReplaceAll(Printable(text), {{"\n", " "}, {"\t", " "}, {"|", "\xc2\xa6"}});
  if (line.empty()) return "-";
  const std::string fence(LongestFence(line) + 1, '`');
  return absl::StrCat(fence, " ", line, " ", fence);
}

std::string CodeBlock(std::string_view text) {
  const std::string printable = Printable(text);
  const std::string fence(std::max<size_t>(3, LongestFence(printable) + 1), '`');
  return absl::StrCat(fence, "text\n", printable, printable.ends_with('\n') ? "" : "\n", fence,
                      "\n");
}

std::string MarkdownRow(const v1::GateReport::Workload& workload) {
  const std::string start = absl::StrCat("| ", Code(workload.workload()), " | ",
                                         v1::GateReport::Decision_Name(workload.decision()), " | ");
  if (workload.pair_count() == 0) return absl::StrCat(start, "- | - | 0 | - |\n");
  return absl::StrCat(
      start, absl::StrFormat("%.4f | %.4f to %.4f | %d | %.2f %% |\n", workload.ratio(),
                             workload.ratio_low(), workload.ratio_high(), workload.pair_count(),
                             100 * workload.minimum_detectable_effect_ratio()));
}

}  // namespace

void DecideReport(const GateOptions& options, const v1::Evaluation& evaluation,
                  std::string_view baseline, v1::GateReport* report) {
  const v1::Outcome& outcome = evaluation.outcome();
  const GateMargins margins = MarginsOf(options.tier);
  report->set_tier(std::string(GateTierName(options.tier)));
  report->set_tolerated_slowdown_ratio(margins.tolerated);
  report->set_target_slowdown_ratio(margins.target);
  report->set_worker(evaluation.worker());
  report->clear_workloads();
  report->clear_explanation();
  if (outcome.verdict() != v1::PASSED) return SetFault(outcome, baseline, report);
  const GateResult result = DecideGate(options, PairsOf(outcome));
  report->set_decision(ToProto(result.decision));
  SetWorkloads(result, report);
  if (result.decision != GateDecision::kInconclusive) return;
  if (Disturbed(outcome)) {
    report->set_decision(v1::GateReport::ENVIRONMENT_INVALID);
    report->set_explanation(
        "the worker was disturbed while it measured; repeat on a quiet machine");
  } else {
    report->set_explanation(WhyUndecided(*report));
  }
}

std::string GateMarkdown(const v1::GateReport& report) {
  std::string out =
      absl::StrCat("### Assay gate: ", v1::GateReport::Decision_Name(report.decision()), "\n\n");
  if (!report.explanation().empty()) absl::StrAppend(&out, CodeBlock(report.explanation()), "\n");
  absl::StrAppend(
      &out, absl::StrFormat("Tier %s: slower by %.2f %% is tolerated, %.2f %% is to be found.\n",
                            report.tier(), 100 * report.tolerated_slowdown_ratio(),
                            100 * report.target_slowdown_ratio()));
  if (report.workloads_size() > 0) {
    out +=
        "\n| workload | decision | candidate / baseline | interval | pairs | detectable |\n"
        "| --- | --- | ---: | --- | ---: | ---: |\n";
    for (const v1::GateReport::Workload& workload : report.workloads()) {
      out += MarkdownRow(workload);
    }
    out += "\n";
    for (const v1::GateReport::Workload& workload : report.workloads()) {
      absl::StrAppend(&out, "* ", Code(workload.workload()), ": ", Code(workload.explanation()),
                      "\n");
    }
  }
  absl::StrAppend(&out, "\nJudged on ", Code(report.worker()), "; evaluations: ",
                  absl::StrJoin(report.evaluations(), ", ",
                                [](std::string* text, const std::string& name) {
                                  absl::StrAppend(text, Code(name));
                                }),
                  "\n");
  return out;
}

int ExitCodeOf(const v1::GateReport& report) {
  switch (report.decision()) {
    case v1::GateReport::PASS:
      return kExitPassed;
    case v1::GateReport::REGRESSION:
      return kExitRegression;
    case v1::GateReport::NOT_CORRECT:
      return kExitNotPassed;
    case v1::GateReport::BASELINE_INVALID:
    case v1::GateReport::PROBLEM_INVALID:
      return kExitError;
    case v1::GateReport::ENVIRONMENT_INVALID:
      return kExitInvalidEnvironment;
    default:
      return kExitInconclusive;
  }
}

}  // namespace assay
