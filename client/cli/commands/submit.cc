// assay submit: reads candidates from files, creates evaluations, and waits for the verdicts with
// --wait.
#include <unistd.h>

#include <iostream>

#include "base/status.h"
#include "client/cli/command.h"
#include "client/cli/exit_code.h"
#include "client/cli/output.h"
#include "client/cli/report.h"
#include "client/cli/rpc.h"
#include "client/cli/submission.h"

namespace assay {
namespace {

constexpr int64_t kWaitSecondsMax = 7 * 24 * 3600;

// A line that is rewritten on a terminal, and nothing elsewhere.
class Progress {
 public:
  void Show(const std::string& text) {
    if (!enabled_ || text == last_) return;
    std::cerr << "\r\x1b[K" << text << std::flush;
    last_ = text;
  }
  void Clear() {
    if (enabled_ && !last_.empty()) std::cerr << "\r\x1b[K" << std::flush;
    last_.clear();
  }

 private:
  const bool enabled_ = isatty(STDERR_FILENO) != 0;
  std::string last_;
};

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
  for (const v1::CreateEvaluationRequest& request : requests) {
    v1::Evaluation evaluation;
    ASSAY_RETURN_IF_ERROR(connection.ToStatus(connection.evaluations().CreateEvaluation(
        Connection::Context().get(), request, &evaluation)));
    created.push_back(std::move(evaluation));
  }
  Progress progress;
  for (v1::Evaluation& evaluation : created) {
    if (arguments.Has("wait") && !IsFinal(evaluation.state())) {
      ASSAY_ASSIGN_OR_RETURN(evaluation,
                             connection.WaitFor(evaluation.name(), absl::Seconds(timeout_s),
                                                [&](const v1::Evaluation& snapshot) {
                                                  progress.Show(EvaluationLine(snapshot));
                                                }));
      progress.Clear();
    }
    if (context.json) {
      std::cout << ToJson(evaluation) << std::endl;
    } else {
      std::cout << EvaluationReport(evaluation) << std::flush;
    }
    // The first that did not pass decides.
    if (arguments.Has("wait") && code == kExitPassed) code = ExitCodeOf(evaluation);
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
