// assay up: the server and the workers of this machine, as one foreground process.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/address.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/status.h"
#include "client/cli/command.h"
#include "client/cli/exit_code.h"
#include "client/cli/process.h"
#include "client/cli/restarts.h"

namespace assay {
namespace {

constexpr absl::Duration kServerStart = absl::Seconds(60);
// The first start measures the machine's ceilings.
constexpr absl::Duration kWorkerStart = absl::Seconds(180);
// A worker finishes its evaluation before it stops.
constexpr absl::Duration kDrain = absl::Seconds(330);
constexpr absl::Duration kServerStop = absl::Seconds(30);

volatile sig_atomic_t stop_requested = 0;
extern "C" void OnStopSignal(int) { stop_requested = 1; }

std::string DefaultDataDirectory() {
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && *state != '\0') return absl::StrCat(state, "/assay");
  const char* home = std::getenv("HOME");
  return absl::StrCat(home != nullptr ? home : ".", "/.local/state/assay");
}

struct UpOptions {
  std::string data;
  std::string listen;
  std::string problems;
  std::string metrics_listen;
  std::string publish_db;
  std::string worker_name;
  std::string binaries;
  std::vector<std::string> devices;  // one worker each
};

absl::StatusOr<UpOptions> ReadOptions(const CommandContext& context) {
  ASSAY_RETURN_IF_ERROR(ExpectWords(context, 0, "no words"));
  UpOptions options;
  options.devices = absl::StrSplit(context.arguments.Get("device", "cpu"), ',');
  std::set<std::string> seen;
  for (const std::string& device : options.devices) {
    if (device != "cpu" && device != "cuda" && !absl::StartsWith(device, "cuda:") &&
        !absl::StartsWith(device, "emulated:sm_")) {
      return absl::InvalidArgumentError(
          absl::StrCat("--device ", device,
                       ": takes 'cpu', 'cuda', 'cuda:1' and 'emulated:sm_80' and the like, "
                       "separated by commas"));
    }
    if (!seen.insert(device).second) {
      return absl::InvalidArgumentError(absl::StrCat("--device names ", device, " twice"));
    }
  }
  options.data = context.arguments.Get("data", DefaultDataDirectory());
  options.listen = context.arguments.Get("listen", "127.0.0.1:7400");
  options.problems = context.arguments.Get("problems", ASSAY_PROBLEMS_DIR);
  options.metrics_listen = context.arguments.Get("metrics-listen");
  options.publish_db = context.arguments.Get("publish-db");
  options.worker_name = context.arguments.Get("name");
  ASSAY_RETURN_IF_ERROR(Annotate(CheckListenAddress(options.listen), "--listen"));
  if (!IsLoopback(options.listen)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--listen ", options.listen,
        ": 'assay up' serves this machine alone; for others run assay-server with "
        "--tls-cert and --tls-key, and assay-worker (README, \"Beyond one machine\")"));
  }
  if (!options.metrics_listen.empty()) {
    ASSAY_RETURN_IF_ERROR(Annotate(CheckListenAddress(options.metrics_listen), "--metrics-listen"));
  }
  ASSAY_ASSIGN_OR_RETURN(options.binaries, ExecutableDirectory());
  if (!std::filesystem::is_directory(options.problems)) {
    return ErrorWithReason(
        absl::StatusCode::kNotFound, "PATH_NOT_FOUND",
        absl::StrCat("no problem folder at ", options.problems, "; name it with --problems"));
  }
  return options;
}

absl::StatusOr<ChildProcess> StartWorker(const UpOptions& options, const std::string& device,
                                         const std::string& address) {
  // Each worker has a name and a folder of its own.
  const bool first = device == options.devices.front();
  std::string suffix = first ? "" : absl::StrCat("-", device);
  std::replace_if(
      suffix.begin(), suffix.end(), [](char c) { return c == ':' || c == '_'; }, '-');
  std::vector<std::string> arguments = {
      options.binaries + "/assay-worker", "--server=" + address, "--device=" + device,
      absl::StrCat("--state-dir=", options.data, "/worker", suffix)};
  if (!options.worker_name.empty()) {
    arguments.push_back(absl::StrCat("--name=", options.worker_name, suffix));
  } else if (!first) {
    arguments.push_back(absl::StrCat("--name=worker", suffix));
  }
  ASSAY_ASSIGN_OR_RETURN(ChildProcess worker, ChildProcess::Start(arguments));
  const auto name = worker.WaitForLine("registered ", kWorkerStart, &stop_requested);
  if (!name.ok()) {
    return Annotate(name.status(), absl::StrCat("assay-worker for ", device, " did not start"));
  }
  return worker;
}

// Until a signal comes or a child cannot be kept up.
absl::StatusOr<int> Supervise(const UpOptions& options, const std::string& address,
                              ChildProcess& server, std::vector<ChildProcess>& workers) {
  RestartBudget restarts;
  while (stop_requested == 0) {
    if (server.Poll().has_value()) {
      return absl::UnavailableError("assay-server ended; its own message stands above");
    }
    for (size_t i = 0; i < workers.size(); ++i) {
      if (!workers[i].Poll().has_value()) continue;
      if (!restarts.Take(SystemClock()->Monotonic())) {
        return absl::UnavailableError(
            absl::StrCat("assay-worker ended more than ", kRestartsMax, " times within ",
                         absl::FormatDuration(kRestartWindow), "; its own messages stand above"));
      }
      Log(LogLevel::kWarning, "worker_restart");
      ASSAY_ASSIGN_OR_RETURN(workers[i], StartWorker(options, options.devices[i], address));
    }
    absl::SleepFor(absl::Milliseconds(100));
  }
  return kExitPassed;
}

absl::StatusOr<int> Run(const CommandContext& context) {
  ASSAY_ASSIGN_OR_RETURN(const UpOptions options, ReadOptions(context));
  ASSAY_RETURN_IF_ERROR(CreateDirectories(options.data));
  struct sigaction action = {};
  action.sa_handler = OnStopSignal;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);

  std::vector<std::string> arguments = {options.binaries + "/assay-server",
                                        "--data=" + options.data, "--listen=" + options.listen,
                                        "--problems=" + options.problems};
  if (!options.metrics_listen.empty()) {
    arguments.push_back("--metrics-listen=" + options.metrics_listen);
  }
  if (!options.publish_db.empty()) arguments.push_back("--publish-db=" + options.publish_db);
  ASSAY_ASSIGN_OR_RETURN(ChildProcess server, ChildProcess::Start(arguments));
  const auto address = server.WaitForLine("listening ", kServerStart, &stop_requested);
  if (!address.ok()) return Annotate(address.status(), "assay-server did not start");
  std::vector<ChildProcess> workers;
  absl::StatusOr<int> code = kExitPassed;
  for (const std::string& device : options.devices) {
    auto worker = StartWorker(options, device, *address);
    if (!worker.ok()) {
      code = worker.status();
      break;
    }
    workers.push_back(*std::move(worker));
  }
  if (code.ok()) {
    std::cout << "ready " << *address << std::endl;
    code = Supervise(options, *address, server, workers);
  }
  for (ChildProcess& worker : workers) worker.Signal(SIGTERM);
  for (ChildProcess& worker : workers) worker.Wait(kDrain);
  server.Signal(SIGTERM);
  server.Wait(kServerStop);
  if (stop_requested != 0) return kExitPassed;
  return code;
}

}  // namespace

std::vector<Command> UpCommands() {
  return {{.name = "up",
           .usage =
               "[--data DIR] [--listen HOST:PORT] [--device cpu,cuda,emulated:sm_80] [--problems "
               "DIR] [--name "
               "WORKER]\n    [--metrics-listen HOST:PORT] [--publish-db FILE]",
           .help = "Run the server and the workers of this machine; prints 'ready HOST:PORT'",
           .flags = {.valued = {"data", "listen", "device", "problems", "name", "metrics-listen",
                                "publish-db"},
                     .switches = {}},
           .run = Run}};
}

}  // namespace assay
