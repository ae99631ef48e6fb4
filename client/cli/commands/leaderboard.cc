// assay leaderboard PROBLEM
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "base/text.h"
#include "client/cli/command.h"
#include "client/cli/exit_code.h"
#include "client/cli/output.h"
#include "client/cli/rpc.h"
#include "kernels/problem.h"

namespace assay {
namespace {

std::vector<std::string> Row(const v1::LeaderboardEntry& entry) {
  return {absl::StrCat(entry.rank()),
          entry.workload(),
          Printable(entry.candidate_label()),
          FormatNanoseconds(entry.median_ns()),
          FormatRatio(entry.efficiency_ratio()),
          entry.bound(),
          entry.baseline().empty()
              ? "-"
              : absl::StrFormat("%.2fx %s", entry.speedup_ratio(), entry.baseline()),
          FormatRatio(entry.runner_spread_ratio()),
          entry.device_class(),
          Printable(entry.author().empty() ? entry.model() : entry.author())};
}

absl::StatusOr<int> Run(const CommandContext& context) {
  ASSAY_RETURN_IF_ERROR(ExpectWords(context, 1, "one problem"));
  ASSAY_ASSIGN_OR_RETURN(const int64_t entries_max, context.arguments.GetInt("top", 50, 1, 1000));
  v1::GetLeaderboardRequest request;
  request.set_problem(absl::StrCat("problems/", ProblemId(context.arguments.positional()[0])));
  request.set_workload(context.arguments.Get("workload"));
  request.set_device_class(context.arguments.Get("device"));
  request.set_entries_max(static_cast<int>(entries_max));
  Connection connection(context.server);
  v1::GetLeaderboardResponse response;
  ASSAY_RETURN_IF_ERROR(connection.ToStatus(
      connection.leaderboard().GetLeaderboard(Connection::Context().get(), request, &response)));
  if (context.json) {
    std::cout << ToJson(response) << "\n";
    return kExitPassed;
  }
  if (response.entries_size() == 0) {
    std::cout << "no ranked result yet; submit with --level ranked\n";
    return kExitPassed;
  }
  std::vector<std::vector<std::string>> rows = {{"rank", "workload", "candidate", "median",
                                                 "of limit", "bound", "baseline", "spread",
                                                 "device class", "author"}};
  for (const v1::LeaderboardEntry& entry : response.entries()) rows.push_back(Row(entry));
  std::cout << FormatTable(rows, {0, 3, 4, 7});
  return kExitPassed;
}

}  // namespace

std::vector<Command> LeaderboardCommands() {
  return {{.name = "leaderboard",
           .usage = "PROBLEM [--workload W] [--device CLASS] [--top N] [--json]",
           .help = "Rank the candidates of a problem",
           .flags = {.valued = {"workload", "device", "top"}, .switches = {}},
           .run = Run}};
}

}  // namespace assay
