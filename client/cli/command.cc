#include "client/cli/command.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/address.h"
#include "base/status.h"
#include "base/strings.h"
#include "base/text.h"
#include "client/cli/exit_code.h"
#include "client/cli/output.h"

namespace assay {
namespace {

std::vector<Command> AllCommands() {
  std::vector<Command> all;
  for (auto& group : {UpCommands(), SubmitCommands(), EvaluationCommands(), ProblemCommands(),
                      CandidateCommands(), LeaderboardCommands(), GateCommands(), FleetCommands(),
                      AccessCommands(), DoctorCommands()}) {
    all.insert(all.end(), group.begin(), group.end());
  }
  return all;
}

constexpr int64_t kListLimitDefault = 50;
constexpr int64_t kListLimitMax = 1'000'000;

std::string CommandTable(const std::vector<Command>& commands) {
  std::vector<std::vector<std::string>> rows;
  for (const Command& command : commands) {
    rows.push_back({absl::StrCat("  ", command.name), command.help});
  }
  return FormatTable(rows);
}

void PrintHelp(const std::vector<Command>& commands, std::ostream& out) {
  out << "assay judges compute kernels.\n\nUsage: assay COMMAND ...\n\n"
      << CommandTable(commands)
      << "\nEvery command takes --server HOST:PORT (or ASSAY_SERVER) and --json; 'assay COMMAND "
         "--help' tells its flags.\nA server beyond this machine takes --tls-ca FILE (or "
         "ASSAY_TLS_CA) and a token: --token-file FILE or ASSAY_TOKEN.\nExit codes: 0 passed, 1 "
         "regression, 2 usage, problem or "
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

// "evaluations list" and the others of "evaluations".
std::vector<Command> Subcommands(const std::vector<Command>& commands, const std::string& word) {
  std::vector<Command> found;
  for (const Command& command : commands) {
    if (command.name.compare(0, word.size() + 1, word + " ") == 0) found.push_back(command);
  }
  return found;
}

absl::Status UnknownCommand(const std::vector<Command>& subcommands,
                            const std::vector<std::string>& words) {
  if (subcommands.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown command '", words[0], "'; 'assay help' lists the commands"));
  }
  std::vector<std::string> known;
  for (const Command& command : subcommands) known.push_back(command.name);
  const bool named = words.size() > 1 && words[1].compare(0, 1, "-") != 0;
  return absl::InvalidArgumentError(
      absl::StrCat(named ? absl::StrCat("unknown command '", words[0], " ", words[1], "'")
                         : absl::StrCat("'", words[0], "' alone is no command"),
                   "; there are: ", absl::StrJoin(known, ", ")));
}

// Protobuf would only log a text that is not UTF-8, and the call would fail without a message.
absl::Status CheckUtf8(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (IsUtf8(word)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "the argument '", word, "' is not UTF-8; write it, or name the file, in UTF-8"));
  }
  return absl::OkStatus();
}

int PrintError(absl::Status status, bool json) {
  // The server's all have one.
  if (absl::IsInvalidArgument(status) && GetReason(status).empty()) {
    status = ErrorWithReason(status.code(), "USAGE", Sv(status.message()));
  }
  if (json) {
    std::cout << ErrorJson(status) << std::endl;
  } else {
    std::cerr << "assay: " << PrintableLine(Sv(status.message())) << "\n";
  }
  return kExitError;
}

std::string FromEnvironment(const char* name, const char* fallback = "") {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : fallback;
}

absl::StatusOr<Endpoint> ReadServer(const Arguments& arguments) {
  const std::string address =
      arguments.Get("server", FromEnvironment("ASSAY_SERVER", "127.0.0.1:7400"));
  ASSAY_RETURN_IF_ERROR(Annotate(CheckAddress(address), "--server or ASSAY_SERVER"));
  ChannelFiles files;
  files.ca = arguments.Get("tls-ca", FromEnvironment("ASSAY_TLS_CA"));
  files.token = arguments.Get("token-file");
  return ReadEndpoint(address, files, FromEnvironment("ASSAY_TOKEN"));
}

absl::StatusOr<int> Run(const Command& command, const std::vector<std::string>& words, bool json) {
  FlagSet flags = command.flags;
  flags.valued.insert(flags.valued.end(), {"server", "tls-ca", "token-file"});
  flags.switches.insert(flags.switches.end(), {"json", "help"});
  ASSAY_ASSIGN_OR_RETURN(const Arguments arguments, Arguments::Parse(words, flags));
  if (arguments.Has("help")) {
    std::cout << "Usage: assay " << command.name << " " << command.usage << "\n\n"
              << command.help << "\n";
    return kExitPassed;
  }
  for (const std::string& word : arguments.positional()) {
    if (word.empty()) {
      return absl::InvalidArgumentError(
          "an argument is empty; give a name or a path, or leave it out");
    }
  }
  ASSAY_ASSIGN_OR_RETURN(Endpoint server, ReadServer(arguments));
  return command.run({arguments, std::move(server), json});
}

}  // namespace

int RunCommandLine(const std::vector<std::string>& words) {
  const std::vector<Command> commands = AllCommands();
  if (words.empty() || words[0] == "help" || words[0] == "--help") {
    PrintHelp(commands, words.empty() ? std::cerr : std::cout);
    return words.empty() ? kExitError : kExitPassed;
  }
  const bool json = std::find(words.begin(), words.end(), "--json") != words.end();
  const absl::Status utf8 = CheckUtf8(words);
  if (!utf8.ok()) return PrintError(utf8, json);
  std::vector<std::string> rest;
  const Command* command = FindCommand(commands, words, &rest);
  if (command == nullptr) {
    const std::vector<Command> subcommands = Subcommands(commands, words[0]);
    if (!subcommands.empty() && words.size() == 2 && words[1] == "--help") {
      std::cout << CommandTable(subcommands);
      return kExitPassed;
    }
    return PrintError(UnknownCommand(subcommands, words), json);
  }
  const absl::StatusOr<int> code = Run(*command, rest, json);
  return code.ok() ? *code : PrintError(code.status(), json);
}

absl::Status ExpectWords(const CommandContext& context, size_t count, const std::string& what) {
  if (context.arguments.positional().size() == count) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("expected ", what, ", got ",
                                                 context.arguments.positional().size(),
                                                 " words; --help tells the usage"));
}

absl::StatusOr<int64_t> GetListLimit(const CommandContext& context) {
  return context.arguments.GetInt("limit", kListLimitDefault, 1, kListLimitMax);
}

void TellOfMore(const std::string& next_page_token) {
  if (next_page_token.empty()) return;
  std::cerr << "assay: there are more; go on with --page-token " << next_page_token
            << ", or raise --limit\n";
}

}  // namespace assay
