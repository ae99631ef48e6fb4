// assay evaluations list|show|watch|cancel
#include <algorithm>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "base/status.h"
#include "client/cli/command.h"
#include "client/cli/exit_code.h"
#include "client/cli/output.h"
#include "client/cli/report.h"
#include "client/cli/rpc.h"

namespace assay {
namespace {

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
                         context.arguments.GetInt("timeout", 3600, 1, 7 * 24 * 3600));
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
           .run = RunCancel}};
}

}  // namespace assay
