// assay gate: compares a candidate with a baseline by interleaved pairs of fresh runners on one
// worker. A regression must be found twice, the second time on fresh pairs.
#include <iostream>

#include "absl/strings/str_cat.h"
#include "assay/v1/gate.pb.h"
#include "base/limits.h"
#include "base/status.h"
#include "client/cli/command.h"
#include "client/cli/gate_report.h"
#include "client/cli/output.h"
#include "client/cli/progress.h"
#include "client/cli/report.h"
#include "client/cli/rpc.h"
#include "client/cli/submission.h"
#include "server/gate/gate.h"

namespace assay {
namespace {

// The confirmation's threshold: with the first stage's 100 the bound on a false alarm is .01 x .05.
constexpr double kConfirmThreshold = 20;

// One stage: a PAIRED evaluation and the decision on its pairs.
absl::Status RunStage(const CommandContext& context, Connection* connection,
                      const v1::CreateEvaluationRequest& request, const GateOptions& options,
                      absl::Duration timeout, v1::GateReport* report) {
  ASSAY_ASSIGN_OR_RETURN(v1::Evaluation evaluation, connection->Create(request));
  report->add_evaluations(evaluation.name());
  Progress progress;
  ASSAY_ASSIGN_OR_RETURN(
      evaluation,
      connection->WaitFor(evaluation.name(), timeout, [&](const v1::Evaluation& snapshot) {
        progress.Show(absl::StrCat(report->evaluations_size() == 1 ? "pairs: " : "fresh pairs: ",
                                   EvaluationLine(snapshot)));
      }));
  if (evaluation.state() != v1::SUCCEEDED) {
    return absl::UnavailableError(EvaluationLine(evaluation));
  }
  DecideReport(options, evaluation, context.arguments.Get("baseline"), report);
  return absl::OkStatus();
}

absl::StatusOr<v1::CreateEvaluationRequest> MakeRequest(const CommandContext& context) {
  const Arguments& arguments = context.arguments;
  ASSAY_RETURN_IF_ERROR(ExpectWords(context, 0, "no words beside --baseline and --candidate"));
  if (context.json && arguments.Has("markdown")) {
    return absl::InvalidArgumentError("--json and --markdown exclude each other; give one");
  }
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
  ASSAY_ASSIGN_OR_RETURN(
      const int64_t pairs,
      arguments.GetInt("pairs", kGatePairsDefault, kGatePairsMin, limits::kPairCountMax));
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
  const absl::Duration timeout = absl::Seconds(timeout_s);
  ASSAY_RETURN_IF_ERROR(RunStage(context, &connection, request, options, timeout, &report));
  if (report.decision() == v1::GateReport::REGRESSION) {
    options.regression_threshold = kConfirmThreshold;
    ASSAY_RETURN_IF_ERROR(RunStage(context, &connection, request, options, timeout, &report));
    if (report.decision() == v1::GateReport::PASS ||
        report.decision() == v1::GateReport::INCONCLUSIVE) {
      report.set_decision(v1::GateReport::INCONCLUSIVE);
      report.set_explanation("a first series of pairs found a regression, fresh pairs did not");
    }
  }
  std::cout << (context.json ? ToJson(report) + "\n" : GateMarkdown(report));
  return ExitCodeOf(report);
}

}  // namespace

std::vector<Command> GateCommands() {
  return {{.name = "gate",
           .usage = "--baseline PATH --candidate PATH [--problem NAME] [--tier "
                    "strict|default|loose] [--workload W]...\n    [--device CLASS] [--pairs N] "
                    "[--timeout SECONDS] [--json|--markdown]",
           .help = "Fail when a candidate is slower than its baseline; prints Markdown or JSON",
           .flags = {.valued = {"baseline", "candidate", "problem", "tier", "workload", "device",
                                "pairs", "timeout"},
                     .switches = {"markdown"}},
           .run = Run}};
}

}  // namespace assay
