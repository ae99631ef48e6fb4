// assay doctor: what this machine can give: walls, compiler, cores, clocks, and whether a server
// answers.
#include <unistd.h>

#include <iostream>
#include <thread>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "client/cli/command.h"
#include "client/cli/commands/doctor_checks.h"
#include "client/cli/exit_code.h"
#include "client/cli/output.h"
#include "client/cli/rpc.h"
#include "worker/sandbox/sandbox.h"
#include "worker/sandbox/slots.h"

namespace assay {
namespace {

// First line of a file under /sys or /proc, or "".
std::string FirstLine(const std::string& path) {
  const auto text = ReadFile(path, 1 << 16);
  if (!text.ok()) return "";
  return std::string(absl::StripAsciiWhitespace(text->substr(0, text->find('\n'))));
}

std::string FindProgram(const std::string& name) {
  for (const char* directory : {"/usr/bin/", "/usr/local/bin/", "/bin/"}) {
    const std::string path = directory + name;
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return "";
}

void CheckPrograms(std::vector<DoctorCheck>* checks) {
  const std::string compiler = FindProgram("g++");
  checks->push_back({"compiler", !compiler.empty(), true,
                     compiler.empty() ? "g++ is missing: install the package g++" : compiler});
  const std::string bwrap = FindProgram("bwrap");
  checks->push_back({"bubblewrap program", !bwrap.empty(), true,
                     bwrap.empty() ? "bwrap is missing: install the package bubblewrap" : bwrap});
}

void CheckClocks(std::vector<DoctorCheck>* checks) {
  const unsigned cores = std::thread::hardware_concurrency();
  checks->push_back({"cores", cores >= 2, false,
                     absl::StrCat(cores, cores >= 2 ? ""
                                                    : ": runner and guest share one core: "
                                                      "times are rough and rank nowhere")});
  const bool accounts = !FirstLine("/proc/self/schedstat").empty();
  checks->push_back({"kernel accounts", accounts, false,
                     accounts ? "/proc/PID/schedstat"
                              : "no /proc/PID/schedstat (CONFIG_SCHED_INFO): hidden work cannot be "
                                "seen, so no time ranks"});
  const std::string governor = FirstLine("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  checks->push_back({"governor", governor == "performance", false,
                     governor.empty() ? "not visible (virtual machine?)" : governor});
  const std::string no_turbo = FirstLine("/sys/devices/system/cpu/intel_pstate/no_turbo");
  const std::string boost = FirstLine("/sys/devices/system/cpu/cpufreq/boost");
  const bool known = !no_turbo.empty() || !boost.empty();
  checks->push_back({"turbo off", no_turbo == "1" || boost == "0", false,
                     known
                         ? "turbo is " + std::string(no_turbo == "1" || boost == "0" ? "off" : "on")
                         : "not visible (virtual machine?)"});
  const std::string isolated = FirstLine("/sys/devices/system/cpu/isolated");
  checks->push_back({"isolated cores", !isolated.empty(), false,
                     isolated.empty() ? "none (boot with isolcpus= for quieter times)" : isolated});
}

void CheckServer(const CommandContext& context, std::vector<DoctorCheck>* checks) {
  Connection connection(context.server);
  v1::ListWorkersRequest request;
  v1::ListWorkersResponse response;
  const absl::Status status = connection.ToStatus(connection.fleet().ListWorkers(
      Connection::Context(absl::Seconds(3)).get(), request, &response));
  checks->push_back(
      {"server", status.ok(), false,
       status.ok() ? absl::StrCat(context.server.address, ", ", response.workers_size(), " workers")
                   : absl::StrCat("none at ", context.server.address)});
}

void PrintJson(const std::vector<DoctorCheck>& checks) {
  std::vector<std::string> parts;
  for (const DoctorCheck& check : checks) {
    v1::ErrorDetail text;  // borrows protobuf's JSON escaping
    text.set_message(check.detail);
    const std::string json = ToJson(text);
    const std::string detail = json.substr(json.find("\"message\":") + 10);
    parts.push_back(
        absl::StrCat("{\"name\":\"", check.name, "\",\"ok\":", check.ok ? "true" : "false",
                     ",\"required\":", check.required ? "true" : "false", ",\"detail\":", detail));
  }
  std::cout << "{\"checks\":[" << absl::StrJoin(parts, ",") << "]}\n";
}

absl::StatusOr<int> Run(const CommandContext& context) {
  ASSAY_RETURN_IF_ERROR(ExpectWords(context, 0, "no words"));
  std::vector<DoctorCheck> checks;
  CheckPrograms(&checks);
  checks.push_back(OpenblasCheck(""));
  for (DoctorCheck& check : WallChecks(ProcessSlots().status(), ProbeWalls()))
    checks.push_back(std::move(check));
  CheckClocks(&checks);
  CheckServer(context, &checks);
  bool fit = true;
  for (const DoctorCheck& check : checks) fit &= check.ok || !check.required;
  if (context.json) {
    PrintJson(checks);
  } else {
    std::vector<std::vector<std::string>> rows;
    for (const DoctorCheck& check : checks) {
      rows.push_back({check.ok ? Paint("ok", Color::kGreen)
                               : Paint("--", check.required ? Color::kRed : Color::kYellow),
                      check.name, Printable(check.detail)});
    }
    std::cout << FormatTable(rows);
  }
  return fit ? kExitPassed : kExitInvalidEnvironment;
}

}  // namespace

std::vector<Command> DoctorCommands() {
  return {{.name = "doctor",
           .usage = "[--json]",
           .help = "Tell what this machine can give: walls, compiler, clocks, server",
           .flags = {},
           .run = Run}};
}

}  // namespace assay
