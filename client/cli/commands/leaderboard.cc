// assay leaderboard PROBLEM
#include <iostream>
#include <set>

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

// What has no rank yet, since its second run is under way.
std::string RankText(const v1::LeaderboardEntry& entry) {
  return entry.confirmation() == v1::LeaderboardEntry::PENDING ? "pending"
                                                               : absl::StrCat(entry.rank());
}

std::vector<std::string> Row(const v1::LeaderboardEntry& entry) {
  return {RankText(entry),
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
  request.set_contract(context.arguments.Get("contract"));
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
  std::set<std::string> contracts;
  for (const v1::LeaderboardEntry& entry : response.entries()) contracts.insert(entry.contract());
  const bool show_contract = contracts.size() > 1;
  if (show_contract) rows.front().push_back("contract");
  for (const v1::LeaderboardEntry& entry : response.entries()) {
    rows.push_back(Row(entry));
    if (show_contract) rows.back().push_back(entry.contract().empty() ? "-" : entry.contract());
  }
  std::cout << FormatTable(rows, {0, 3, 4, 7});
  return kExitPassed;
}

}  // namespace

std::vector<Command> LeaderboardCommands() {
  return {{.name = "leaderboard",
           .usage = "PROBLEM [--workload W] [--device CLASS] [--contract NAME] [--top N] [--json]",
           .help = "Rank the candidates of a problem",
           .flags = {.valued = {"workload", "device", "contract", "top"}, .switches = {}},
           .run = Run}};
}

}  // namespace assay
