// assay submit: reads candidates from files, creates evaluations, and waits for the verdicts with
// --wait.
#include <iostream>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "client/cli/command.h"
#include "client/cli/exit_code.h"
#include "client/cli/output.h"
#include "client/cli/progress.h"
#include "client/cli/report.h"
#include "client/cli/rpc.h"
#include "client/cli/submission.h"

namespace assay {
namespace {

constexpr int64_t kWaitSecondsMax = 7 * 24 * 3600;

void Print(const CommandContext& context, const v1::Evaluation& evaluation) {
  std::cout << (context.json ? ToJson(evaluation) + "\n" : EvaluationReport(evaluation))
            << std::flush;
}

absl::StatusOr<int> RunSubmit(const CommandContext& context) {
  const Arguments& arguments = context.arguments;
  if (arguments.positional().empty()) {
    return absl::InvalidArgumentError("name at least one candidate folder or source file");
  }
  ASSAY_ASSIGN_OR_RETURN(const int64_t timeout_s,
                         arguments.GetInt("timeout", 3600, 1, kWaitSecondsMax));
  std::vector<v1::CreateEvaluationRequest> requests;
  for (const std::string& path : arguments.positional()) {
    ASSAY_ASSIGN_OR_RETURN(v1::CreateEvaluationRequest request, MakeSubmission(context, path));
    if (arguments.positional().size() > 1 && !request.request_id().empty()) {
      return absl::InvalidArgumentError("--request-id names one submission; give one path");
    }
    requests.push_back(std::move(request));
  }

  Connection connection(context.server);
  int code = kExitPassed;
  std::vector<v1::Evaluation> created;
  for (size_t i = 0; i < requests.size(); ++i) {
    auto evaluation = connection.Create(std::move(requests[i]));
    if (!evaluation.ok()) {
      // Those before it exist and run: their names are the only way to them.
      for (const v1::Evaluation& before : created) Print(context, before);
      if (created.empty()) return evaluation.status();
      return Annotate(evaluation.status(),
                      absl::StrCat(arguments.positional()[i], " (", created.size(),
                                   " before it were created and stay)"));
    }
    created.push_back(*std::move(evaluation));
  }
  Progress progress;
  for (size_t i = 0; i < created.size(); ++i) {
    if (arguments.Has("wait") && !IsFinal(created[i].state())) {
      auto finished = connection.WaitFor(
          created[i].name(), absl::Seconds(timeout_s),
          [&](const v1::Evaluation& snapshot) { progress.Show(EvaluationLine(snapshot)); });
      progress.Clear();
      if (!finished.ok()) {
        for (; i < created.size(); ++i) Print(context, created[i]);
        return finished.status();
      }
      created[i] = *std::move(finished);
    }
    Print(context, created[i]);
    // The first that did not pass decides.
    if (arguments.Has("wait") && code == kExitPassed) code = ExitCodeOf(created[i]);
  }
  return code;
}

}  // namespace

std::vector<Command> SubmitCommands() {
  return {{.name = "submit",
           .usage = "PATH... [--problem NAME] [--workload W]... [--device CLASS] "
                    "[--level verify|quick|ranked]\n    [--configuration NAME=VALUE]... "
                    "[--priority N] [--request-id ID] [--stored-answer] [--wait] [--timeout "
                    "SECONDS] [--json]",
           .help = "Judge candidates: folders or single source files",
           .flags = {.valued = {"problem", "workload", "device", "level", "configuration",
                                "priority", "request-id", "timeout"},
                     .switches = {"wait", "stored-answer"}},
           .run = RunSubmit}};
}

}  // namespace assay
