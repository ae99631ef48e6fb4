#include "worker/sandbox/launch.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"

namespace assay {
namespace {

// Sources are first moved here, so that no target overwrites a source.
constexpr int kParkingFirst = kLaunchDescriptorsMax + 32;
constexpr rlim_t kDescriptorsNeeded = 1024;

// What the child reports when a step fails.
struct ChildFailure {
  int error = 0;
  char step[32] = {};
};

// Everything below runs in the child of a process that may have threads: only async-signal-safe
// calls, and raw system calls where the C library would signal "all threads".
struct Child {
  const LaunchPlan& plan;
  int report = -1;
  pid_t parent = 0;
  char** argv = nullptr;
  char** envp = nullptr;

  [[noreturn]] void Fail(const char* step) const {
    ChildFailure failure;
    failure.error = errno;
    std::strncpy(failure.step, step, sizeof(failure.step) - 1);
    (void)!write(report, &failure, sizeof(failure));
    _exit(127);
  }

  void DieWithParent() const {
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) Fail("prctl");
    if (getppid() != parent) _exit(127);
  }

  void ResetSignals() const {
    for (int signal_number = 1; signal_number < NSIG; ++signal_number) {
      struct sigaction action = {};
      action.sa_handler = SIG_DFL;
      (void)sigaction(signal_number, &action, nullptr);
    }
    sigset_t none;
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, nullptr);
  }

  void EnterCgroups() const {
    for (const int fd : plan.cgroup_entries) {
      if (write(fd, "0", 1) != 1) Fail("cgroup.procs");
    }
  }

  void DropUser() const {
    if (plan.user == 0) return;
    const auto id = static_cast<unsigned int>(plan.user);
    if (syscall(SYS_setgroups, 0, nullptr) != 0) Fail("setgroups");
    if (syscall(SYS_setresgid, id, id, id) != 0) Fail("setresgid");
    if (syscall(SYS_setresuid, id, id, id) != 0) Fail("setresuid");
  }

  void MoveDescriptors() const {
    int parked[kLaunchDescriptorsMax];
    int count = 0;
    for (const auto& [here, there] : plan.descriptors) {
      parked[count] = fcntl(here, F_DUPFD_CLOEXEC, kParkingFirst);
      if (parked[count++] < 0) Fail("dup");
    }
    if (syscall(SYS_close_range, 3, ~0u, CLOSE_RANGE_CLOEXEC) != 0) Fail("close_range");
    count = 0;
    for (const auto& [here, there] : plan.descriptors) {
      if (dup2(parked[count++], there) < 0) Fail("dup2");
    }
  }

  [[noreturn]] void Run() const {
    DieWithParent();
    ResetSignals();
    EnterCgroups();
    if (plan.core >= 0) {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(plan.core, &set);
      if (sched_setaffinity(0, sizeof(set), &set) != 0) Fail("sched_setaffinity");
    }
    rlimit descriptors;
    if (getrlimit(RLIMIT_NOFILE, &descriptors) == 0 && descriptors.rlim_cur < kDescriptorsNeeded) {
      descriptors.rlim_cur = std::min(kDescriptorsNeeded, descriptors.rlim_max);
      (void)setrlimit(RLIMIT_NOFILE, &descriptors);
    }
    MoveDescriptors();
    for (const auto& [resource, value] : plan.limits) {
      if (setrlimit(static_cast<__rlimit_resource>(resource), &value) != 0) Fail("setrlimit");
    }
    // Some containers forbid it; what needs it does without.
    if (plan.fixed_addresses) (void)syscall(SYS_personality, ADDR_NO_RANDOMIZE);
    umask(022);
    if (chdir("/") != 0) Fail("chdir");
    DropUser();
    DieWithParent();  // a change of identity clears it
    execve(plan.program.c_str(), argv, envp);
    Fail("execve");
  }
};

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

absl::StatusOr<pid_t> Launch(const LaunchPlan& plan) {
  if (plan.descriptors.size() >= kLaunchDescriptorsMax) {
    return absl::InvalidArgumentError("too many descriptors for one sandbox");
  }
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoError(errno, "pipe2");
  UniqueFd reader(ends[0]);
  // Above every target, so that moving descriptors does not close it.
  UniqueFd writer(fcntl(ends[1], F_DUPFD_CLOEXEC, kParkingFirst));
  close(ends[1]);
  if (!writer.valid()) return ErrnoError(errno, "dup of the report pipe; raise RLIMIT_NOFILE");

  std::vector<char*> argv = Pointers(plan.arguments);
  std::vector<char*> envp = Pointers(plan.environment);
  Child child{plan, writer.get(), getpid(), argv.data(), envp.data()};
  const pid_t pid = fork();
  if (pid < 0) return absl::UnavailableError(absl::StrCat("fork: ", std::strerror(errno)));
  if (pid == 0) child.Run();
  writer.Reset();
  ChildFailure failure;
  ssize_t got;
  do {
    got = read(reader.get(), &failure, sizeof(failure));
  } while (got < 0 && errno == EINTR);
  if (got == 0) return pid;
  int status;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  failure.step[sizeof(failure.step) - 1] = '\0';
  return absl::UnavailableError(
      absl::StrCat("cannot start ", plan.program, ": ", failure.step, ": ",
                   got == sizeof(failure) ? std::strerror(failure.error) : "unknown"));
}

}  // namespace assay
