// assay gate: compares a candidate with a baseline by interleaved pairs of fresh runners on one
// worker. A regression must be found twice, the second time on fresh pairs.
#include <cmath>
#include <iostream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "assay/v1/gate.pb.h"
#include "base/status.h"
#include "base/strings.h"
#include "client/cli/command.h"
#include "client/cli/exit_code.h"
#include "client/cli/output.h"
#include "client/cli/report.h"
#include "client/cli/rpc.h"
#include "client/cli/submission.h"
#include "server/gate/gate.h"

namespace assay {
namespace {

// The confirmation's threshold: with the first stage's 100 the bound on a false alarm is .01 x .05.
constexpr double kConfirmThreshold = 20;

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

void Fill(const GateResult& result, v1::GateReport* report) {
  report->clear_workloads();
  report->set_decision(ToProto(result.decision));
  report->set_tolerated_slowdown_ratio(result.margins.tolerated);
  report->set_target_slowdown_ratio(result.margins.target);
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

// One stage: a PAIRED evaluation and the decision on its pairs.
absl::Status RunStage(Connection* connection, const v1::CreateEvaluationRequest& request,
                      const GateOptions& options, absl::Duration timeout, v1::GateReport* report) {
  v1::Evaluation evaluation;
  ASSAY_RETURN_IF_ERROR(connection->ToStatus(connection->evaluations().CreateEvaluation(
      Connection::Context().get(), request, &evaluation)));
  ASSAY_ASSIGN_OR_RETURN(
      evaluation, connection->WaitFor(evaluation.name(), timeout, [](const v1::Evaluation&) {}));
  report->add_evaluations(evaluation.name());
  report->set_worker(evaluation.worker());
  if (evaluation.state() != v1::SUCCEEDED) {
    return absl::UnavailableError(EvaluationLine(evaluation));
  }
  if (evaluation.outcome().verdict() != v1::PASSED) {
    report->set_decision(v1::GateReport::NOT_CORRECT);
    report->set_explanation(absl::StrCat(v1::Verdict_Name(evaluation.outcome().verdict()), " ",
                                         evaluation.outcome().reason(), ": ",
                                         evaluation.outcome().message()));
    return absl::OkStatus();
  }
  Fill(DecideGate(options, PairsOf(evaluation.outcome())), report);
  if (report->decision() == v1::GateReport::INCONCLUSIVE && Disturbed(evaluation.outcome())) {
    report->set_decision(v1::GateReport::ENVIRONMENT_INVALID);
    report->set_explanation(
        "the worker was disturbed while it measured; repeat on a quiet machine");
  }
  return absl::OkStatus();
}

std::string Markdown(const v1::GateReport& report) {
  std::string out = absl::StrFormat(
      "### Assay gate: %s\n\n%sTier %s: slower by %.2f %% is tolerated, %.2f %% is to be "
      "found.\n\n",
      v1::GateReport::Decision_Name(report.decision()),
      report.explanation().empty() ? "" : Printable(report.explanation()) + "\n\n", report.tier(),
      100 * report.tolerated_slowdown_ratio(), 100 * report.target_slowdown_ratio());
  if (report.workloads_size() > 0) {
    out +=
        "| workload | decision | candidate / baseline | interval | pairs | detectable |\n"
        "| --- | --- | ---: | --- | ---: | ---: |\n";
  }
  for (const v1::GateReport::Workload& workload : report.workloads()) {
    absl::StrAppend(
        &out,
        absl::StrFormat("| %s | %s | %.4f | %.4f to %.4f | %d | %.2f %% |\n", workload.workload(),
                        v1::GateReport::Decision_Name(workload.decision()), workload.ratio(),
                        workload.ratio_low(), workload.ratio_high(), workload.pair_count(),
                        100 * workload.minimum_detectable_effect_ratio()));
  }
  for (const v1::GateReport::Workload& workload : report.workloads()) {
    absl::StrAppend(&out, "\n* ", workload.workload(), ": ", workload.explanation());
  }
  absl::StrAppend(&out, "\n\nMeasured on ", report.worker(), "; evaluations: ");
  for (int i = 0; i < report.evaluations_size(); ++i) {
    absl::StrAppend(&out, i > 0 ? ", " : "", report.evaluations(i));
  }
  return out + "\n";
}

int ExitCodeOf(const v1::GateReport& report) {
  switch (report.decision()) {
    case v1::GateReport::PASS:
      return kExitPassed;
    case v1::GateReport::REGRESSION:
      return kExitRegression;
    case v1::GateReport::NOT_CORRECT:
      return kExitNotPassed;
    case v1::GateReport::ENVIRONMENT_INVALID:
      return kExitInvalidEnvironment;
    default:
      return kExitInconclusive;
  }
}

absl::StatusOr<v1::CreateEvaluationRequest> MakeRequest(const CommandContext& context) {
  const Arguments& arguments = context.arguments;
  ASSAY_RETURN_IF_ERROR(ExpectWords(context, 0, "no words beside --baseline and --candidate"));
  for (const char* flag : {"baseline", "candidate"}) {
    if (!arguments.Has(flag)) {
      return absl::InvalidArgumentError(absl::StrCat("--", flag, " PATH is missing"));
    }
  }
  ASSAY_ASSIGN_OR_RETURN(v1::CreateEvaluationRequest request,
                         MakeSubmission(context, arguments.Get("candidate")));
  ASSAY_ASSIGN_OR_RETURN(v1::CreateEvaluationRequest baseline,
                         MakeSubmission(context, arguments.Get("baseline")));
  if (request.evaluation().problem() != baseline.evaluation().problem()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the candidate is for ", request.evaluation().problem(), ", the baseline for ",
                     baseline.evaluation().problem(), "; a gate compares two of one problem"));
  }
  ASSAY_ASSIGN_OR_RETURN(const int64_t pairs, arguments.GetInt("pairs", kGatePairsDefault,
                                                               kGatePairsMin, kGatePairsMax));
  request.mutable_baseline_candidate()->Swap(baseline.mutable_candidate());
  request.mutable_evaluation()->set_level(v1::PAIRED);
  request.mutable_evaluation()->set_pair_count(static_cast<int>(pairs));
  return request;
}

absl::StatusOr<int> Run(const CommandContext& context) {
  ASSAY_ASSIGN_OR_RETURN(const v1::CreateEvaluationRequest request, MakeRequest(context));
  GateOptions options;
  ASSAY_ASSIGN_OR_RETURN(options.tier, ParseGateTier(context.arguments.Get("tier", "default")));
  ASSAY_ASSIGN_OR_RETURN(const int64_t timeout_s,
                         context.arguments.GetInt("timeout", 3600, 1, 7 * 24 * 3600));
  Connection connection(context.server);
  v1::GateReport report;
  report.set_tier(std::string(GateTierName(options.tier)));
  ASSAY_RETURN_IF_ERROR(RunStage(&connection, request, options, absl::Seconds(timeout_s), &report));
  if (report.decision() == v1::GateReport::REGRESSION) {
    options.regression_threshold = kConfirmThreshold;
    ASSAY_RETURN_IF_ERROR(
        RunStage(&connection, request, options, absl::Seconds(timeout_s), &report));
    if (report.decision() != v1::GateReport::REGRESSION) {
      report.set_decision(v1::GateReport::INCONCLUSIVE);
      report.set_explanation("a first series of pairs found a regression, fresh pairs did not");
    }
  }
  std::cout << (context.json ? ToJson(report) + "\n" : Markdown(report));
  return ExitCodeOf(report);
}

}  // namespace

std::vector<Command> GateCommands() {
  return {{.name = "gate",
           .usage = "--baseline PATH --candidate PATH [--problem NAME] [--tier "
                    "strict|default|loose] [--workload W]...\n    [--device CLASS] [--pairs N] "
                    "[--timeout SECONDS] [--json|--markdown]",
           .help = "Fail when a candidate is slower than its baseline",
           .flags = {.valued = {"baseline", "candidate", "problem", "tier", "workload", "device",
                                "pairs", "timeout"},
                     .switches = {"markdown"}},
           .run = Run}};
}

}  // namespace assay
