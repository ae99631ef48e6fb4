// assay evaluations list|show|watch|cancel|replay
#include <algorithm>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "base/status.h"
#include "client/cli/command.h"
#include "client/cli/exit_code.h"
#include "client/cli/output.h"
#include "client/cli/progress.h"
#include "client/cli/replay_report.h"
#include "client/cli/report.h"
#include "client/cli/rpc.h"

namespace assay {
namespace {

constexpr int64_t kWaitSecondsMax = 7 * 24 * 3600;

// Accepts the bare id too.
std::string EvaluationName(const std::string& text) {
  return text.find('/') == std::string::npos ? absl::StrCat("evaluations/", text) : text;
}

absl::StatusOr<int> RunList(const CommandContext& context) {
  ASSAY_RETURN_IF_ERROR(ExpectWords(context, 0, "no words"));
  ASSAY_ASSIGN_OR_RETURN(int64_t left, GetListLimit(context));
  Connection connection(context.server);
  v1::ListEvaluationsRequest request;
  request.set_filter(context.arguments.Get("filter"));
  request.set_page_token(context.arguments.Get("page-token"));
  do {
    request.set_page_size(static_cast<int>(std::min<int64_t>(left, limits::kPageSizeMax)));
    v1::ListEvaluationsResponse response;
    ASSAY_RETURN_IF_ERROR(connection.ToStatus(
        connection.evaluations().ListEvaluations(Connection::Context().get(), request, &response)));
    for (const v1::Evaluation& evaluation : response.evaluations()) {
      std::cout << (context.json ? ToJson(evaluation) : EvaluationLine(evaluation)) << "\n";
    }
    left -= response.evaluations_size();
    request.set_page_token(response.next_page_token());
  } while (left > 0 && !request.page_token().empty());
  TellOfMore(request.page_token());
  return kExitPassed;
}

int Print(const CommandContext& context, const v1::Evaluation& evaluation) {
  std::cout << (context.json ? ToJson(evaluation) + "\n" : EvaluationReport(evaluation));
  return kExitPassed;
}

absl::StatusOr<int> RunShow(const CommandContext& context) {
  ASSAY_RETURN_IF_ERROR(ExpectWords(context, 1, "one evaluation"));
  Connection connection(context.server);
  v1::GetEvaluationRequest request;
  request.set_name(EvaluationName(context.arguments.positional()[0]));
  request.set_include_samples(context.arguments.Has("samples"));
  v1::Evaluation evaluation;
  ASSAY_RETURN_IF_ERROR(connection.ToStatus(
      connection.evaluations().GetEvaluation(Connection::Context().get(), request, &evaluation)));
  return Print(context, evaluation);
}

absl::StatusOr<int> RunWatch(const CommandContext& context) {
  ASSAY_RETURN_IF_ERROR(ExpectWords(context, 1, "one evaluation"));
  ASSAY_ASSIGN_OR_RETURN(const int64_t timeout_s,
                         context.arguments.GetInt("timeout", 3600, 1, kWaitSecondsMax));
  Connection connection(context.server);
  ASSAY_ASSIGN_OR_RETURN(
      const v1::Evaluation evaluation,
      connection.WaitFor(EvaluationName(context.arguments.positional()[0]),
                         absl::Seconds(timeout_s), [&](const v1::Evaluation& snapshot) {
                           if (!IsFinal(snapshot.state())) {
                             std::cout
                                 << (context.json ? ToJson(snapshot) : EvaluationLine(snapshot))
                                 << std::endl;
                           }
                         }));
  Print(context, evaluation);
  return ExitCodeOf(evaluation);
}

absl::StatusOr<int> RunCancel(const CommandContext& context) {
  ASSAY_RETURN_IF_ERROR(ExpectWords(context, 1, "one evaluation"));
  Connection connection(context.server);
  v1::CancelEvaluationRequest request;
  request.set_name(EvaluationName(context.arguments.positional()[0]));
  v1::Evaluation evaluation;
  ASSAY_RETURN_IF_ERROR(connection.ToStatus(connection.evaluations().CancelEvaluation(
      Connection::Context().get(), request, &evaluation)));
  return Print(context, evaluation);
}

absl::StatusOr<int> RunReplay(const CommandContext& context) {
  ASSAY_RETURN_IF_ERROR(ExpectWords(context, 1, "one evaluation"));
  ASSAY_ASSIGN_OR_RETURN(const int64_t timeout_s,
                         context.arguments.GetInt("timeout", 3600, 1, kWaitSecondsMax));
  Connection connection(context.server);
  v1::CreateEvaluationRequest request;
  request.mutable_evaluation()->set_replay_of(EvaluationName(context.arguments.positional()[0]));
  ASSAY_ASSIGN_OR_RETURN(v1::Evaluation replay, connection.Create(std::move(request)));
  if (!context.arguments.Has("wait")) return Print(context, replay);
  Progress progress;
  auto finished = connection.WaitFor(
      replay.name(), absl::Seconds(timeout_s),
      [&](const v1::Evaluation& snapshot) { progress.Show(EvaluationLine(snapshot)); });
  progress.Clear();
  if (!finished.ok()) {
    Print(context, replay);
    return finished.status();
  }
  Print(context, *finished);
  if (!finished->has_outcome()) return kExitError;
  // The one that was run, where another evaluation answered the one that was named.
  v1::GetEvaluationRequest get;
  get.set_name(finished->replay_of());
  v1::Evaluation original;
  ASSAY_RETURN_IF_ERROR(connection.ToStatus(
      connection.evaluations().GetEvaluation(Connection::Context().get(), get, &original)));
  const ReplayReport report = CompareReplay(original, *finished);
  (context.json ? std::cerr : std::cout) << ReplayText(original, *finished, report);
  return report.same ? kExitPassed : kExitRegression;
}

}  // namespace

std::vector<Command> EvaluationCommands() {
  return {{.name = "evaluations list",
           .usage = "[--filter EXPRESSION] [--limit N] [--page-token TOKEN] [--json]",
           .help = "List evaluations, newest first; 50 unless --limit says otherwise",
           .flags = {.valued = {"filter", "limit", "page-token"}, .switches = {}},
           .run = RunList},
          {.name = "evaluations show",
           .usage = "NAME [--samples] [--json]",
           .help = "Show one evaluation",
           .flags = {.valued = {}, .switches = {"samples"}},
           .run = RunShow},
          {.name = "evaluations watch",
           .usage = "NAME [--timeout SECONDS] [--json]",
           .help = "Follow one evaluation until it is final",
           .flags = {.valued = {"timeout"}, .switches = {}},
           .run = RunWatch},
          {.name = "evaluations cancel",
           .usage = "NAME [--json]",
           .help = "Cancel one evaluation that is not final",
           .flags = {},
           .run = RunCancel},
          {.name = "evaluations replay",
           .usage = "NAME [--wait] [--timeout SECONDS] [--json]",
           .help = "Judge a finished evaluation again on the same inputs; with --wait says "
                   "whether verdict, reason and findings are the same (exit 1 when not)",
           .flags = {.valued = {"timeout"}, .switches = {"wait"}},
           .run = RunReplay}};
}

}  // namespace assay
