#include "worker/guest/guest_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "base/status.h"
#include "worker/guest/guest_protocol.h"
#include "worker/sandbox/launch.h"
#include "worker/sandbox/program_files.h"

namespace assay {
namespace {

constexpr char kGuestInside[] = "/assay-guest";
constexpr int64_t kGuestFileBytesMax = int64_t{limits::kArtifactBytesMax} + (1 << 20);
// The artifact's copy, and nothing else, has to fit.
constexpr int64_t kGuestTmpfsBytes = kGuestFileBytesMax;
constexpr int64_t kGuestStackBytes = int64_t{64} << 20;
constexpr int kGuestProcessesMax = 4;

// Baselines link libraries that would start threads of their own.
std::vector<std::string> Environment() { return {"OPENBLAS_NUM_THREADS=1"}; }

bool Readable(int fd) {
  pollfd entry{fd, POLLIN, 0};
  return poll(&entry, 1, 0) > 0;
}

class SandboxedGuest : public GuestProcess {
 public:
  explicit SandboxedGuest(std::unique_ptr<Sandbox> sandbox) : sandbox_(std::move(sandbox)) {}
  absl::StatusOr<int> CommandPid() override { return sandbox_->CommandPid(); }
  void Kill() override { sandbox_->Kill(); }
  absl::StatusOr<SandboxExit> Wait(absl::Duration timeout) override {
    return sandbox_->Wait(timeout);
  }
  bool Ended() const override { return Readable(sandbox_->end_descriptor()); }
  int end_descriptor() const override { return sandbox_->end_descriptor(); }
  const std::vector<std::string>& walls() const override { return sandbox_->walls(); }
  const std::vector<std::string>& missing_walls() const override {
    return sandbox_->missing_walls();
  }

 private:
  const std::unique_ptr<Sandbox> sandbox_;
};

// No namespaces, no other user, no cgroups: only the guest's own filters and limits.
class DirectGuest : public GuestProcess {
 public:
  DirectGuest(int pid, UniqueFd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}
  ~DirectGuest() override {
    if (exit_.has_value()) return;
    Kill();
    (void)Wait(absl::InfiniteDuration());
  }
  absl::StatusOr<int> CommandPid() override { return pid_; }
  void Kill() override {
    if (!exit_.has_value()) kill(pid_, SIGKILL);
  }
  absl::StatusOr<SandboxExit> Wait(absl::Duration timeout) override {
    if (exit_.has_value()) return *exit_;
    pollfd entry{pidfd_.get(), POLLIN, 0};
    const int timeout_ms = timeout == absl::InfiniteDuration()
                               ? -1
                               : static_cast<int>(absl::ToInt64Milliseconds(timeout));
    int ready;
    do {
      ready = poll(&entry, 1, timeout_ms);
    } while (ready < 0 && errno == EINTR);
    if (ready <= 0) return absl::DeadlineExceededError("the guest is still alive");
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    SandboxExit result;
    result.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    result.code = WIFSIGNALED(status) ? 128 + result.signal : WEXITSTATUS(status);
    exit_ = result;
    return result;
  }
  bool Ended() const override { return Readable(pidfd_.get()); }
  int end_descriptor() const override { return pidfd_.get(); }
  const std::vector<std::string>& walls() const override { return walls_; }
  const std::vector<std::string>& missing_walls() const override { return missing_; }

 private:
  const int pid_;
  const UniqueFd pidfd_;
  std::optional<SandboxExit> exit_;
  const std::vector<std::string> walls_ = {kWallSeccomp, kWallRlimits};
  const std::vector<std::string> missing_ = {kWallBubblewrap, kWallUserNamespace, kWallNetwork,
                                             kWallFiles,      kWallUid,           kWallCgroupMemory,
                                             kWallCgroupPids};
};

absl::StatusOr<std::unique_ptr<GuestProcess>> StartDirect(
    const GuestOptions& options, const std::vector<std::pair<int, int>>& descriptors) {
  UniqueFd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null.valid()) return ErrnoError(errno, "open /dev/null");
  LaunchPlan plan;
  plan.program = options.guest_binary;
  plan.arguments = {"assay-guest", kGuestDirectFlag};
  plan.environment = Environment();
  plan.descriptors = descriptors;
  plan.descriptors.push_back({null.get(), 0});
  plan.core = options.core;
  plan.limits = {{RLIMIT_CORE, {0, 0}},
                 {RLIMIT_STACK, {kGuestStackBytes, kGuestStackBytes}},
                 {RLIMIT_FSIZE, {kGuestFileBytesMax, kGuestFileBytesMax}}};
  ASSAY_ASSIGN_OR_RETURN(const pid_t pid, Launch(plan));
  UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd.valid()) {
    const int error = errno;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    return ErrnoError(error, "pidfd_open");
  }
  return std::unique_ptr<GuestProcess>(std::make_unique<DirectGuest>(pid, std::move(pidfd)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<GuestProcess>> GuestProcess::Start(
    const GuestOptions& options, const std::vector<std::pair<int, int>>& descriptors) {
  if (options.allow_unsandboxed) return StartDirect(options, descriptors);
  UniqueFd binary(open(options.guest_binary.c_str(), O_RDONLY | O_CLOEXEC));
  if (!binary.valid()) {
    return absl::UnavailableError(
        absl::StrCat(ErrnoError(errno, absl::StrCat("open ", options.guest_binary)).message(),
                     "; assay-guest belongs beside the other programs"));
  }
  SandboxOptions sandbox;
  sandbox.arguments = {kGuestInside};
  sandbox.environment = Environment();
  sandbox.files = {{binary.get(), kGuestInside, 0555}};
  sandbox.toolchain = false;
  ASSAY_ASSIGN_OR_RETURN(sandbox.read_only_binds,
                         ProgramFiles(options.guest_binary, options.libraries));
  sandbox.descriptors = descriptors;
  sandbox.filter = SyscallFilter::kGuest;
  sandbox.slot = options.slot;
  sandbox.core = options.core;
  sandbox.memory_bytes_max = options.memory_bytes_max;
  sandbox.address_space_fallback = false;  // the tensors are not known yet; the guest limits itself
  sandbox.tmpfs_bytes_max = kGuestTmpfsBytes;
  sandbox.processes_max = kGuestProcessesMax;
  sandbox.file_bytes_max = kGuestFileBytesMax;
  sandbox.stack_bytes_max = kGuestStackBytes;
  ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<Sandbox> started, Sandbox::Start(sandbox));
  return std::unique_ptr<GuestProcess>(std::make_unique<SandboxedGuest>(std::move(started)));
}

}  // namespace assay
