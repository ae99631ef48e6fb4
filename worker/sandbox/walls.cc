// Tries every wall once, from inside (assay-guest --probe) and from outside.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <functional>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "worker/guest/guest_protocol.h"
#include "worker/sandbox/cgroup.h"
#include "worker/sandbox/sandbox.h"
#include "worker/sandbox/slots.h"

namespace assay {
namespace {

constexpr char kProbeInside[] = "/assay-guest";
constexpr absl::Duration kProbeMax = absl::Seconds(20);
constexpr int64_t kProbeMemoryBytes = int64_t{64} << 20;
constexpr int kProbeProcesses = 8;

// What a probe needs from the machine.
struct ProbeMachine {
  int slot = 0;
  UniqueFd guest;     // assay-guest
  UniqueFd listener;  // on 127.0.0.1
  int port = 0;
  std::string secret;  // a file of this process's user that nobody else may read
};

std::string GuestBinary() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
  if (length <= 0) return "";
  const std::string self(path, static_cast<size_t>(length));
  return absl::StrCat(self.substr(0, self.rfind('/')), "/assay-guest");
}

absl::Status Listen(ProbeMachine* machine) {
  machine->listener.Reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  if (!machine->listener.valid() ||
      bind(machine->listener.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      listen(machine->listener.get(), 1) != 0 ||
      getsockname(machine->listener.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return ErrnoError(errno, "listening on 127.0.0.1");
  }
  machine->port = ntohs(address.sin_port);
  return absl::OkStatus();
}

SandboxOptions ProbeOptions(const ProbeMachine& machine, std::vector<std::string> what) {
  SandboxOptions options;
  options.arguments = {kProbeInside, kGuestProbeFlag};
  options.arguments.insert(options.arguments.end(), what.begin(), what.end());
  options.files = {{machine.guest.get(), kProbeInside, 0555}};
  options.filter = SyscallFilter::kNone;
  options.slot = machine.slot;
  return options;
}

absl::StatusOr<SandboxExit> RunProbe(const SandboxOptions& options) {
  ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<Sandbox> sandbox, Sandbox::Start(options));
  return sandbox->Wait(kProbeMax);
}

// Why the wall does not hold; empty when it does.
using Test = std::function<std::string(const ProbeMachine&)>;

// A wall that holds when every probe is refused.
Test Refuses(std::vector<std::string> what, std::function<void(SandboxOptions*)> change = {}) {
  return [what = std::move(what), change = std::move(change)](const ProbeMachine& machine) {
    SandboxOptions options = ProbeOptions(machine, what);
    if (change) change(&options);
    const absl::StatusOr<SandboxExit> exit = RunProbe(options);
    if (!exit.ok()) return std::string(exit.status().message());
    if (exit->code == 0) return std::string();
    const auto index = static_cast<size_t>(exit->code - 1);
    return absl::StrCat("not refused: ", index < what.size() ? what[index] : "(the probe failed)");
  };
}

std::string TestUid(const ProbeMachine& machine) {
  if (geteuid() != 0) {
    return "the worker is not root, so candidates run as its own user; run it as root, or as a "
           "user that owns nothing of value";
  }
  // Bound in whole, so that only the file's owner stands between.
  return Refuses({"read:/secret"}, [&](SandboxOptions* options) {
    options->read_only_binds = {{machine.secret, "/secret"}};
  })(machine);
}

std::string TestNetwork(const ProbeMachine& machine) {
  return Refuses({absl::StrCat("connect:", machine.port)})(machine);
}

std::string TestFiles(const ProbeMachine& machine) {
  return Refuses({"read:/etc/passwd", "read:/proc/self/environ", "read:/dev/zero",
                  absl::StrCat("read:", machine.secret), "descriptors", "environment"})(machine);
}

std::string TestSeccomp(const ProbeMachine& machine) {
  for (const SyscallFilter filter : {SyscallFilter::kCompile, SyscallFilter::kGuest}) {
    const std::string reason =
        Refuses({filter == SyscallFilter::kCompile ? "ptrace" : "socket"},
                [&](SandboxOptions* options) { options->filter = filter; })(machine);
    if (!reason.empty()) return reason;
  }
  return "";
}

std::string TestMemory(const ProbeMachine& machine) {
  const CgroupHome& home = FindCgroupHome();
  if (home.memory_path.empty()) return home.memory_note;
  SandboxOptions options = ProbeOptions(machine, {absl::StrCat("memory:", 2 * kProbeMemoryBytes)});
  options.memory_bytes_max = kProbeMemoryBytes;
  const absl::StatusOr<SandboxExit> exit = RunProbe(options);
  if (!exit.ok()) return std::string(exit.status().message());
  return exit->memory_limit ? "" : "a process used twice its limit; check the memory controller";
}

std::string TestPids(const ProbeMachine& machine) {
  const CgroupHome& home = FindCgroupHome();
  if (home.pids_path.empty()) return home.pids_note;
  return Refuses({absl::StrCat("forks:", 2 * kProbeProcesses)}, [](SandboxOptions* options) {
    options->processes_max = kProbeProcesses;
  })(machine);
}

absl::StatusOr<ProbeMachine> Prepare(const TemporaryDirectory& directory) {
  ASSAY_ASSIGN_OR_RETURN(const SlotShare slots, ProcessSlots());
  ProbeMachine machine;
  machine.slot = slots.probe;
  ASSAY_RETURN_IF_ERROR(Listen(&machine));
  const std::string binary = GuestBinary();
  machine.guest.Reset(open(binary.c_str(), O_RDONLY | O_CLOEXEC));
  if (!machine.guest.valid()) return ErrnoError(errno, absl::StrCat("open ", binary));
  machine.secret = directory.path() + "/secret";
  ASSAY_RETURN_IF_ERROR(WriteFileAtomically(machine.secret, "secret"));
  // The way to it is open: only its own mode keeps others out.
  if (chmod(directory.path().c_str(), 0755) != 0 || chmod(machine.secret.c_str(), 0600) != 0) {
    return ErrnoError(errno, "chmod");
  }
  return machine;
}

Walls TryAll() {
  const std::pair<const char*, Test> tests[] = {
      {kWallBubblewrap, Refuses({})},    {kWallUserNamespace, Refuses({"userns"})},
      {kWallNetwork, TestNetwork},       {kWallFiles, TestFiles},
      {kWallSeccomp, TestSeccomp},       {kWallUid, TestUid},
      {kWallRlimits, Refuses({"core"})}, {kWallCgroupMemory, TestMemory},
      {kWallCgroupPids, TestPids},
  };
  Walls walls;
  absl::Status ready;
  absl::StatusOr<TemporaryDirectory> directory = TemporaryDirectory::Create("assay-probe");
  absl::StatusOr<ProbeMachine> machine =
      directory.ok() ? Prepare(*directory) : absl::StatusOr<ProbeMachine>(directory.status());
  for (const auto& [name, test] : tests) {
    const std::string reason =
        machine.ok() ? test(*machine)
                     : absl::StrCat("not tried: ", std::string(machine.status().message()));
    if (reason.empty()) {
      walls.standing.push_back(name);
    } else {
      walls.missing.push_back(name);
      walls.notes.push_back(absl::StrCat(name, ": ", reason));
    }
  }
  return walls;
}

}  // namespace

bool IsWallRequired(std::string_view wall) {
  return wall != kWallUid && wall != kWallCgroupMemory && wall != kWallCgroupPids;
}

Walls ProbeWalls() {
  static const Walls walls = TryAll();
  return walls;
}

}  // namespace assay
