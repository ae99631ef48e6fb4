#include "worker/sandbox/sandbox.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "worker/sandbox/cgroup.h"
#include "worker/sandbox/launch.h"
#include "worker/sandbox/seccomp_filter.h"

namespace assay {
namespace {

// bubblewrap's own descriptors; the command's are below.
constexpr int kCommandDescriptorsMax = 64;
constexpr int kExtraDescriptorFirst = 100;
constexpr rlim_t kOpenFilesMax = 1024;
// The kernel counts processes by user: room for bubblewrap's own, and for those of earlier
// sandboxes that ended and were not reaped, since a worker that was killed leaves them to a slow
// init.
constexpr int kProcessesBeside = 64;
constexpr int kSetupMillisecondsMax = 10'000;
constexpr const char* kBubblewrapPaths[] = {"/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap"};
constexpr const char* kLinks[] = {"/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32"};
// Folders of libraries that are links on some machines.
constexpr const char* kLibraryLinks[] = {"/lib", "/lib64", "/usr/lib64"};

absl::StatusOr<std::string> FindBubblewrap() {
  for (const char* path : kBubblewrapPaths) {
    if (access(path, X_OK) == 0) return std::string(path);
  }
  return absl::UnavailableError("bubblewrap is not installed (no /usr/bin/bwrap)");
}

UniqueFd OpenPidfd(int pid) { return UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))); }

// True when `fd` became readable in time.
bool WaitReadable(int fd, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  while (true) {
    const int64_t left_ms = std::clamp<int64_t>(
        absl::ToInt64Milliseconds(absl::Ceil(deadline - absl::Now(), absl::Milliseconds(1))), 0,
        3'600'000);
    pollfd entry{fd, POLLIN, 0};
    const int ready = poll(&entry, 1, static_cast<int>(left_ms));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
    if (ready == 0 && absl::Now() >= deadline) return false;
  }
}

// The number after `"key":` in bubblewrap's status lines.
std::optional<int> StatusNumber(const std::string& text, const std::string& key) {
  const size_t at = text.find("\"" + key + "\"");
  if (at == std::string::npos) return std::nullopt;
  const size_t digits = text.find_first_of("0123456789", at + key.size() + 2);
  if (digits == std::string::npos) return std::nullopt;
  const size_t end = text.find_first_not_of("0123456789", digits);
  int number;
  if (!absl::SimpleAtoi(text.substr(digits, end - digits), &number)) return std::nullopt;
  return number;
}

// False when it is no link.
bool AddLink(const char* link, std::vector<std::string>* arguments) {
  char target[256];
  const ssize_t length = readlink(link, target, sizeof(target) - 1);
  if (length <= 0) return false;
  target[length] = '\0';
  arguments->insert(arguments->end(), {"--symlink", target, link});
  return true;
}

void AddToolchain(std::vector<std::string>* arguments) {
  arguments->insert(arguments->end(), {"--ro-bind", "/usr", "/usr"});
  for (const char* link : kLinks) {
    if (AddLink(link, arguments) || access(link, X_OK) != 0) continue;
    arguments->insert(arguments->end(), {"--ro-bind", link, link});  // not merged into /usr
  }
}

std::vector<std::pair<int, rlimit>> ResourceLimits(const SandboxOptions& options, bool dropped,
                                                   bool memory_by_limit) {
  std::vector<std::pair<int, rlimit>> limits;
  const auto add = [&](int resource, int64_t value) {
    const auto limit = static_cast<rlim_t>(value);
    limits.push_back({resource, rlimit{limit, limit}});
  };
  add(RLIMIT_CORE, 0);
  add(RLIMIT_NOFILE, kOpenFilesMax);
  add(RLIMIT_STACK, options.stack_bytes_max);
  if (options.file_bytes_max > 0) add(RLIMIT_FSIZE, options.file_bytes_max);
  if (options.cpu_seconds_max > 0) {
    // At the soft limit the signal says what it is for; at the hard one it would be SIGKILL.
    const auto seconds = static_cast<rlim_t>(options.cpu_seconds_max);
    limits.push_back({RLIMIT_CPU, rlimit{seconds, seconds + 1}});
  }
  if (dropped) add(RLIMIT_NPROC, options.processes_max + kProcessesBeside);
  if (memory_by_limit) add(RLIMIT_AS, options.memory_bytes_max);
  return limits;
}

class BubblewrapSandbox : public Sandbox {
 public:
  BubblewrapSandbox(int pid, UniqueFd pidfd, UniqueFd status, Cgroup cgroup,
                    std::vector<std::string> walls, std::vector<std::string> missing)
      : pid_(pid),
        pidfd_(std::move(pidfd)),
        status_(std::move(status)),
        cgroup_(std::move(cgroup)),
        walls_(std::move(walls)),
        missing_(std::move(missing)) {}

  ~BubblewrapSandbox() override {
    if (exit_.has_value()) return;
    Kill();
    // A killed process ends; a bound would leave a zombie behind and gain nothing.
    while (!exit_.has_value()) {
      if (!absl::IsDeadlineExceeded(Wait(absl::Seconds(10)).status())) break;
    }
  }

  int pid() const override { return pid_; }
  int end_descriptor() const override { return pidfd_.get(); }
  const std::vector<std::string>& walls() const override { return walls_; }
  const std::vector<std::string>& missing_walls() const override { return missing_; }

  absl::StatusOr<int> CommandPid() override {
    if (command_pid_ > 0) return command_pid_;
    const absl::Time deadline = absl::Now() + absl::Milliseconds(kSetupMillisecondsMax);
    while (!StatusNumber(status_text_, "child-pid").has_value()) {
      if (!WaitReadable(status_.get(), deadline - absl::Now())) {
        return absl::UnavailableError("bubblewrap did not report its child in time");
      }
      if (!ReadStatus()) return absl::UnavailableError("bubblewrap ended during its setup");
    }
    command_pid_ = *StatusNumber(status_text_, "child-pid");
    command_pidfd_ = OpenPidfd(command_pid_);
    return command_pid_;
  }

  void Kill() override {
    if (exit_.has_value()) return;
    // The command first: its namespace goes with it, and the outer process can still reap it. When
    // the command is not known yet, the outer process takes it along.
    if (CommandPidNow() && command_pidfd_.valid()) {
      (void)syscall(SYS_pidfd_send_signal, command_pidfd_.get(), SIGKILL, nullptr, 0);
    } else {
      (void)syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0);
    }
    killed_ = true;
  }

  absl::StatusOr<SandboxExit> Wait(absl::Duration timeout) override {
    if (exit_.has_value()) return *exit_;
    (void)CommandPidNow();
    if (!WaitReadable(pidfd_.get(), timeout)) {
      return absl::DeadlineExceededError(
          absl::StrCat("the sandbox is still alive after ", absl::FormatDuration(timeout)));
    }
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    while (ReadStatus()) {
    }
    if (CommandPidNow() && command_pidfd_.valid()) {
      (void)syscall(SYS_pidfd_send_signal, command_pidfd_.get(), SIGKILL, nullptr, 0);
      (void)WaitReadable(command_pidfd_.get(), absl::Milliseconds(kSetupMillisecondsMax));
    }
    const Cgroup::Usage usage = cgroup_.ReadUsage();
    cgroup_.Remove();
    SandboxExit result = Decode(status);
    result.memory_limit = usage.memory_limit;
    result.machine_oom = usage.machine_oom;
    result.processes_limit = usage.processes_limit;
    result.peak_memory_bytes = usage.peak_bytes;
    const bool ran = StatusNumber(status_text_, "exit-code").has_value();
    exit_ = ran || killed_ || usage.memory_limit
                ? absl::StatusOr<SandboxExit>(result)
                : absl::UnavailableError(absl::StrCat(
                      "bubblewrap ended with code ", result.code,
                      " before the command started; check user namespaces (assay doctor)"));
    return *exit_;
  }

 private:
  // Takes what bubblewrap has written so far; false at its end.
  bool ReadStatus() {
    char buffer[512];
    const ssize_t got = read(status_.get(), buffer, sizeof(buffer));
    if (got < 0) return errno == EINTR;
    status_text_.append(buffer, static_cast<size_t>(got));
    return got > 0;
  }

  // Whether the command's pid is known, without waiting for it.
  bool CommandPidNow() {
    if (command_pid_ > 0) return true;
    if (!StatusNumber(status_text_, "child-pid").has_value()) {
      if (!WaitReadable(status_.get(), absl::ZeroDuration()) || !ReadStatus()) {
        if (!StatusNumber(status_text_, "child-pid").has_value()) return false;
      }
      if (!StatusNumber(status_text_, "child-pid").has_value()) return false;
    }
    return CommandPid().ok();
  }

  static SandboxExit Decode(int status) {
    SandboxExit result;
    if (WIFSIGNALED(status)) {
      result.signal = WTERMSIG(status);
      result.code = 128 + result.signal;
    } else {
      result.code = WEXITSTATUS(status);
      if (result.code > 128 && result.code <= 128 + SIGRTMAX) result.signal = result.code - 128;
    }
    return result;
  }

  const int pid_;
  const UniqueFd pidfd_;
  const UniqueFd status_;
  Cgroup cgroup_;
  const std::vector<std::string> walls_;
  const std::vector<std::string> missing_;
  std::string status_text_;
  int command_pid_ = 0;
  UniqueFd command_pidfd_;
  bool killed_ = false;
  std::optional<absl::StatusOr<SandboxExit>> exit_;
};

// Collects bubblewrap's command line and the descriptors that it needs itself.
struct Assembly {
  LaunchPlan plan;
  std::vector<UniqueFd> owned;
  int next_extra = kExtraDescriptorFirst;

  void Add(std::initializer_list<std::string> arguments) {
    plan.arguments.insert(plan.arguments.end(), arguments);
  }
  // Gives bubblewrap a descriptor; the number it has there.
  std::string Give(int fd) {
    plan.descriptors.push_back({fd, next_extra});
    return absl::StrCat(next_extra++);
  }
};

void AddFileSystem(const SandboxOptions& options, Assembly* assembly) {
  if (options.toolchain) {
    AddToolchain(&assembly->plan.arguments);
  } else {
    for (const char* link : kLibraryLinks) AddLink(link, &assembly->plan.arguments);
  }
  if (options.tmpfs_bytes_max > 0) {
    assembly->Add(
        {"--size", absl::StrCat(options.tmpfs_bytes_max), "--perms", "0700", "--tmpfs", "/tmp"});
  }
  for (const auto& [outside, inside] : options.read_only_binds) {
    assembly->Add({"--ro-bind", outside, inside});
  }
  for (const SandboxFile& file : options.files) {
    const std::string mode =
        absl::StrCat("0", file.mode >> 6 & 7, file.mode >> 3 & 7, file.mode & 7);
    assembly->Add({"--perms", mode, "--file", assembly->Give(file.descriptor), file.path});
  }
  assembly->Add({"--remount-ro", "/", "--chdir", options.working_directory});
}

absl::Status AddDescriptors(const SandboxOptions& options, Assembly* assembly) {
  bool named[3] = {};
  for (const auto& [here, inside] : options.descriptors) {
    if (inside < 0 || inside >= kCommandDescriptorsMax) {
      return absl::InvalidArgumentError(
          absl::StrCat("descriptor number ", inside, " is not in 0..", kCommandDescriptorsMax - 1));
    }
    if (inside < 3) named[inside] = true;
    assembly->plan.descriptors.push_back({here, inside});
  }
  for (int number = 0; number < 3; ++number) {
    if (named[number]) continue;
    UniqueFd null(open("/dev/null", number == 0 ? O_RDONLY | O_CLOEXEC : O_WRONLY | O_CLOEXEC));
    if (!null.valid()) return ErrnoError(errno, "open /dev/null");
    assembly->plan.descriptors.push_back({null.get(), number});
    assembly->owned.push_back(std::move(null));
  }
  return absl::OkStatus();
}

absl::Status Assemble(const SandboxOptions& options, Assembly* assembly) {
  ASSAY_ASSIGN_OR_RETURN(assembly->plan.program, FindBubblewrap());
  assembly->Add({"bwrap", "--unshare-all", "--unshare-user", "--disable-userns",
                 "--die-with-parent", "--new-session", "--as-pid-1", "--cap-drop", "ALL"});
  for (const std::string& variable : options.environment) {
    const size_t equals = variable.find('=');
    if (equals == std::string::npos) {
      return absl::InvalidArgumentError(absl::StrCat("environment: no '=' in ", variable));
    }
    assembly->Add({"--setenv", variable.substr(0, equals), variable.substr(equals + 1)});
  }
  ASSAY_RETURN_IF_ERROR(AddDescriptors(options, assembly));
  AddFileSystem(options, assembly);
  if (options.filter != SyscallFilter::kNone) {
    ASSAY_ASSIGN_OR_RETURN(UniqueFd program, OpenSeccompProgram(options.filter));
    assembly->Add({"--seccomp", assembly->Give(program.get())});
    assembly->owned.push_back(std::move(program));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Sandbox>> Sandbox::Start(const SandboxOptions& options) {
  if (options.slot < 0 || options.slot >= kSandboxSlotsMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("slot ", options.slot, " is not in 0..", kSandboxSlotsMax - 1));
  }
  if (options.arguments.empty()) return absl::InvalidArgumentError("no command");
  Assembly assembly;
  ASSAY_RETURN_IF_ERROR(Assemble(options, &assembly));
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoError(errno, "pipe2");
  UniqueFd status_reader(ends[0]);
  UniqueFd status_writer(ends[1]);
  assembly.Add({"--json-status-fd", assembly.Give(status_writer.get()), "--"});
  assembly.plan.arguments.insert(assembly.plan.arguments.end(), options.arguments.begin(),
                                 options.arguments.end());

  ASSAY_ASSIGN_OR_RETURN(Cgroup cgroup, Cgroup::Create(options.slot, options.memory_bytes_max,
                                                       options.processes_max + 2));
  std::vector<std::string> walls = {kWallBubblewrap, kWallUserNamespace, kWallNetwork, kWallFiles,
                                    kWallRlimits};
  std::vector<std::string> missing;
  const bool root = geteuid() == 0;
  (options.filter != SyscallFilter::kNone ? walls : missing).push_back(kWallSeccomp);
  (root ? walls : missing).push_back(kWallUid);
  (cgroup.has_memory() ? walls : missing).push_back(kWallCgroupMemory);
  (cgroup.has_pids() ? walls : missing).push_back(kWallCgroupPids);

  assembly.plan.cgroup_entries = cgroup.entry_descriptors();
  assembly.plan.user = root ? kSandboxUidFirst + options.slot : 0;
  assembly.plan.core = options.core;
  assembly.plan.fixed_addresses = options.fixed_addresses;
  assembly.plan.limits = ResourceLimits(
      options, root,
      !cgroup.has_memory() && options.address_space_fallback && options.memory_bytes_max > 0);
  for (const SandboxFile& file : options.files) {
    if (lseek(file.descriptor, 0, SEEK_SET) != 0) {
      return ErrnoError(errno, absl::StrCat("rewind ", file.path));
    }
  }
  ASSAY_ASSIGN_OR_RETURN(const pid_t pid, Launch(assembly.plan));
  UniqueFd pidfd = OpenPidfd(pid);
  if (!pidfd.valid()) {
    const int error = errno;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    return ErrnoError(error, "pidfd_open");
  }
  return std::unique_ptr<Sandbox>(
      std::make_unique<BubblewrapSandbox>(pid, std::move(pidfd), std::move(status_reader),
                                          std::move(cgroup), std::move(walls), std::move(missing)));
}

}  // namespace assay
