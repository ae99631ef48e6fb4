// assay: the command line. Finds the command, parses its flags, prints its error.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/strings.h"
#include "client/cli/command.h"
#include "client/cli/exit_code.h"
#include "client/cli/output.h"

namespace assay {
namespace {

std::vector<Command> AllCommands() {
  std::vector<Command> all;
  for (auto& group : {UpCommands(), SubmitCommands(), EvaluationCommands(), ProblemCommands(),
                      CandidateCommands(), LeaderboardCommands(), GateCommands(), FleetCommands(),
                      DoctorCommands()}) {
    all.insert(all.end(), group.begin(), group.end());
  }
  return all;
}

void PrintHelp(const std::vector<Command>& commands, std::ostream& out) {
  out << "assay judges compute kernels.\n\nUsage: assay COMMAND ...\n\n";
  std::vector<std::vector<std::string>> rows;
  for (const Command& command : commands) {
    rows.push_back({absl::StrCat("  ", command.name), command.help});
  }
  out << FormatTable(rows)
      << "\nEvery command takes --server HOST:PORT (or ASSAY_SERVER) and --json; 'assay COMMAND "
         "--help' tells its flags.\nExit codes: 0 passed, 1 regression, 2 usage, problem or "
         "infrastructure, 3 inconclusive,\n4 environment invalid, 5 the candidate was judged and "
         "did "
         "not pass.\n";
}

// The longest command whose words start the command line; the rest goes to `rest`.
const Command* FindCommand(const std::vector<Command>& commands,
                           const std::vector<std::string>& words, std::vector<std::string>* rest) {
  for (size_t count : {2u, 1u}) {
    if (words.size() < count) continue;
    const std::string name = count == 2 ? words[0] + " " + words[1] : words[0];
    for (const Command& command : commands) {
      if (command.name == name) {
        rest->assign(words.begin() + count, words.end());
        return &command;
      }
    }
  }
  return nullptr;
}

int PrintError(const absl::Status& status, bool json) {
  if (json) {
    std::cout << ErrorJson(status) << std::endl;
  } else {
    std::cerr << "assay: " << Printable(Sv(status.message())) << "\n";
  }
  return kExitError;
}

int Main(const std::vector<std::string>& words) {
  const std::vector<Command> commands = AllCommands();
  if (words.empty() || words[0] == "help" || words[0] == "--help") {
    PrintHelp(commands, words.empty() ? std::cerr : std::cout);
    return words.empty() ? kExitError : kExitPassed;
  }
  std::vector<std::string> rest;
  const Command* command = FindCommand(commands, words, &rest);
  if (command == nullptr) {
    std::cerr << "assay: unknown command '" << Printable(words[0]) << "'\n\n";
    PrintHelp(commands, std::cerr);
    return kExitError;
  }
  FlagSet flags = command->flags;
  flags.valued.push_back("server");
  flags.switches.insert(flags.switches.end(), {"json", "help"});
  auto arguments = Arguments::Parse(rest, flags);
  const bool json = std::find(rest.begin(), rest.end(), "--json") != rest.end();
  if (!arguments.ok()) return PrintError(arguments.status(), json);
  if (arguments->Has("help")) {
    std::cout << "Usage: assay " << command->name << " " << command->usage << "\n\n"
              << command->help << "\n";
    return kExitPassed;
  }
  const char* from_environment = std::getenv("ASSAY_SERVER");
  CommandContext context{
      *arguments,
      arguments->Get("server", from_environment != nullptr ? from_environment : "127.0.0.1:7400"),
      json};
  const absl::Status address = CheckServerAddress(context.server);
  if (!address.ok()) return PrintError(address, json);
  const auto code = command->run(context);
  return code.ok() ? *code : PrintError(code.status(), json);
}

}  // namespace

absl::Status ExpectWords(const CommandContext& context, size_t count, const std::string& what) {
  if (context.arguments.positional().size() == count) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("expected ", what, ", got ",
                                                 context.arguments.positional().size(),
                                                 " words; --help tells the usage"));
}

void TellOfMore(const std::string& next_page_token) {
  if (next_page_token.empty()) return;
  std::cerr << "assay: there are more; go on with --page-token " << next_page_token
            << ", or raise --limit\n";
}

}  // namespace assay

int main(int argc, char** argv) {
  return assay::Main(std::vector<std::string>(argv + 1, argv + argc));
}
