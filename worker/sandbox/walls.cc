// Tries every wall once, from inside (assay-guest --probe) and from outside.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <functional>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "worker/guest/guest_protocol.h"
#include "worker/sandbox/cgroup_home.h"
#include "worker/sandbox/program_files.h"
#include "worker/sandbox/sandbox.h"
#include "worker/sandbox/slots.h"

namespace assay {
namespace {

constexpr char kProbeInside[] = "/assay-guest";
constexpr absl::Duration kProbeMax = absl::Seconds(20);
constexpr int64_t kProbeMemoryBytes = int64_t{64} << 20;
constexpr int kProbeProcesses = 8;
constexpr int kProbeUserProcesses = 256;
constexpr int64_t kProbeFileBytes = int64_t{1} << 20;

// What a probe needs from the machine.
struct ProbeMachine {
  int slot = 0;
  UniqueFd guest;     // assay-guest
  UniqueFd listener;  // on 127.0.0.1
  int port = 0;
  UniqueFd named;  // listens on abstract_name
  std::string abstract_name;
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

// A name without a file, which network namespaces keep apart and no mount namespace hides.
absl::Status ListenAbstract(ProbeMachine* machine) {
  machine->abstract_name = absl::StrCat("assay-probe-", getpid());
  machine->named.Reset(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  machine->abstract_name.copy(address.sun_path + 1, sizeof(address.sun_path) - 1);
  const auto length =
      static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + machine->abstract_name.size());
  if (!machine->named.valid() ||
      bind(machine->named.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      listen(machine->named.get(), 1) != 0) {
    return ErrnoError(errno, "listening on an abstract name");
  }
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

// Reaching processes, identity and the host's name.
std::string TestBubblewrap(const ProbeMachine& machine) {
  // The first process of a container has the number of the sandbox's own.
  const int pid = std::max(getpid(), 2);
  return Refuses({absl::StrCat("signal:", pid), "setuid", "hostname"})(machine);
}

// A file that only its owner may read, bound in whole: only the user stands between.
std::string TestUid(const ProbeMachine& machine) {
  if (geteuid() != 0) return "the worker is not root, so candidates run as its own user";
  return Refuses({"read:/secret"}, [&](SandboxOptions* options) {
    options->read_only_binds = {{machine.secret, "/secret"}};
  })(machine);
}

// Without a user of its own: the mount namespace still hides what that user owns.
std::string TestHidden(const ProbeMachine& machine) {
  if (geteuid() == 0) return "root has a user to drop to";
  return Refuses({absl::StrCat("read:", machine.secret)})(machine);
}

std::string TestNetwork(const ProbeMachine& machine) {
  return Refuses({absl::StrCat("connect:", machine.port),
                  absl::StrCat("abstract:", machine.abstract_name)})(machine);
}

// Guests, which see what they are linked with, and compilers, which see the toolchain.
std::string TestFiles(const ProbeMachine& machine) {
  const auto binds = ProgramFiles(GuestBinary(), {});
  if (!binds.ok()) return std::string(binds.status().message());
  const std::string reason =
      Refuses({"read:/usr/bin", "read:/usr/include", "read:/usr/share", "write:/usr/lib/x"},
              [&](SandboxOptions* options) {
                options->toolchain = false;
                options->read_only_binds = *binds;
              })(machine);
  if (!reason.empty()) return reason;
  return Refuses(
      {"read:/etc/passwd", "read:/proc/1/environ", "read:/proc/self/environ", "read:/dev/zero",
       "read:/sys/kernel", absl::StrCat("read:", machine.secret), "write:/x", "write:/usr/x",
       "descriptors", "environment", absl::StrCat("fill:", 2 * kProbeFileBytes)},
      [](SandboxOptions* options) { options->tmpfs_bytes_max = kProbeFileBytes; })(machine);
}

std::string TestSeccomp(const ProbeMachine& machine) {
  for (const SyscallFilter filter : {SyscallFilter::kCompile, SyscallFilter::kGuest}) {
    const std::string reason =
        Refuses({"ptrace", "socket", "keys", "ring", "events", "clone3"},
                [&](SandboxOptions* options) { options->filter = filter; })(machine);
    if (!reason.empty()) return reason;
  }
  return "";
}

std::string TestRlimits(const ProbeMachine& machine) {
  return Refuses({"core", absl::StrCat("fill:", 2 * kProbeFileBytes)}, [](SandboxOptions* options) {
    options->tmpfs_bytes_max = 4 * kProbeFileBytes;
    options->file_bytes_max = kProbeFileBytes;
  })(machine);
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

// RLIMIT_AS, which a sandbox gets where it has no group for memory.
std::string TestAddressSpace(const ProbeMachine& machine) {
  return Refuses({absl::StrCat("memory:", 2 * kProbeMemoryBytes)}, [](SandboxOptions* options) {
    options->memory_bytes_max = kProbeMemoryBytes;
  })(machine);
}

std::string TestPids(const ProbeMachine& machine) {
  const CgroupHome& home = FindCgroupHome();
  if (home.pids_path.empty()) return home.pids_note;
  return Refuses({absl::StrCat("forks:", 2 * kProbeProcesses)}, [](SandboxOptions* options) {
    options->processes_max = kProbeProcesses;
  })(machine);
}

// RLIMIT_NPROC, which a sandbox with a user of its own gets, with room for those that wait to be
// reaped.
std::string TestUserProcesses(const ProbeMachine& machine) {
  return Refuses({absl::StrCat("forks:", kProbeUserProcesses)}, [](SandboxOptions* options) {
    options->processes_max = kProbeProcesses;
  })(machine);
}

absl::StatusOr<ProbeMachine> Prepare(const TemporaryDirectory& directory) {
  ASSAY_ASSIGN_OR_RETURN(const SlotShare slots, ProcessSlots());
  ProbeMachine machine;
  machine.slot = slots.probe;
  ASSAY_RETURN_IF_ERROR(Listen(&machine));
  ASSAY_RETURN_IF_ERROR(ListenAbstract(&machine));
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

// What is tried of one wall, and of what stands in its place where it does not.
struct WallTest {
  const char* name;
  Test test;
  Test instead = {};
  const char* instead_note = "";  // what the other does not do
};

std::vector<WallTest> WallTests() {
  return {
      {kWallBubblewrap, TestBubblewrap},
      {kWallUserNamespace, Refuses({"userns"})},
      {kWallNetwork, TestNetwork},
      {kWallFiles, TestFiles},
      {kWallSeccomp, TestSeccomp},
      {kWallUid, TestUid, TestHidden,
       "the mount namespace alone hides that user's files; run the worker as root, or as a user "
       "that owns nothing of value"},
      {kWallRlimits, TestRlimits},
      {kWallCgroupMemory, TestMemory, TestAddressSpace,
       "RLIMIT_AS bounds each process instead, and not all of a sandbox together"},
      {kWallCgroupPids, TestPids, TestUserProcesses,
       "RLIMIT_NPROC bounds the processes of the sandbox's user instead"},
  };
}

WallProbe TryWall(const WallTest& wall, const ProbeMachine& machine) {
  const std::string reason = wall.test(machine);
  if (reason.empty()) return {wall.name, WallState::kStanding, ""};
  if (wall.instead && wall.instead(machine).empty()) {
    return {wall.name, WallState::kWeaker, absl::StrCat(reason, "; ", wall.instead_note)};
  }
  return {wall.name, WallState::kMissing, reason};
}

std::vector<WallProbe> TryAll() {
  const absl::StatusOr<TemporaryDirectory> directory = TemporaryDirectory::Create("assay-probe");
  const absl::StatusOr<ProbeMachine> machine =
      directory.ok() ? Prepare(*directory) : absl::StatusOr<ProbeMachine>(directory.status());
  std::vector<WallProbe> probes;
  for (const WallTest& wall : WallTests()) {
    probes.push_back(machine.ok()
                         ? TryWall(wall, *machine)
                         : WallProbe{wall.name, WallState::kMissing,
                                     absl::StrCat("not tried: ", machine.status().message())});
  }
  return probes;
}

}  // namespace

const char* WallStateName(WallState state) {
  switch (state) {
    case WallState::kStanding:
      return "STANDING";
    case WallState::kWeaker:
      return "WEAKER";
    case WallState::kMissing:
      break;
  }
  return "MISSING";
}

std::vector<WallProbe> ProbeWalls() {
  static const std::vector<WallProbe> probes = TryAll();
  return probes;
}

}  // namespace assay
