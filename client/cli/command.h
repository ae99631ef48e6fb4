// One command of the command line. A new one is a file in commands/ and a line in command.cc.
#ifndef ASSAY_CLIENT_CLI_COMMAND_H_
#define ASSAY_CLIENT_CLI_COMMAND_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/channel.h"
#include "client/cli/arguments.h"

namespace assay {

// What every command gets: its parsed arguments and where the server is.
struct CommandContext {
  Arguments arguments;
  // --server, ASSAY_SERVER, or 127.0.0.1:7400; with --tls-ca or ASSAY_TLS_CA, and the token of
  // --token-file or ASSAY_TOKEN.
  Endpoint server;
  bool json = false;
};

struct Command {
  std::string name;   // "submit", "evaluations list"
  std::string usage;  // after the name
  std::string help;   // one line
  FlagSet flags;      // beside --server, --tls-ca, --token-file and --json
  // The exit code; an error is printed (as JSON with --json) and exits 2.
  absl::StatusOr<int> (*run)(const CommandContext& context);
};

// Finds the command that `words` name (those after the program's own), runs it and prints its
// error. The exit code.
int RunCommandLine(const std::vector<std::string>& words);

// INVALID_ARGUMENT unless there are exactly `count` positional words.
absl::Status ExpectWords(const CommandContext& context, size_t count, const std::string& what);

// How many resources a list shows at most, by --limit; a long list takes several pages.
absl::StatusOr<int64_t> GetListLimit(const CommandContext& context);

// After a list that was cut: says on stderr how to get the rest. Nothing for an empty token.
void TellOfMore(const std::string& next_page_token);

std::vector<Command> AccessCommands();
std::vector<Command> CandidateCommands();
std::vector<Command> DoctorCommands();
std::vector<Command> EvaluationCommands();
std::vector<Command> FleetCommands();
std::vector<Command> GateCommands();
std::vector<Command> LeaderboardCommands();
std::vector<Command> ProblemCommands();
std::vector<Command> SubmitCommands();
std::vector<Command> UpCommands();

}  // namespace assay

#endif  // ASSAY_CLIENT_CLI_COMMAND_H_
