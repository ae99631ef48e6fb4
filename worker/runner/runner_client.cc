#include "worker/runner/runner_client.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "assay/internal/v1/runner.pb.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/status.h"
#include "worker/runner/child_environment.h"
#include "worker/runner/framing.h"

namespace assay {
namespace {

using internal::v1::RunnerReport;

constexpr int kReportFd = 3;
constexpr absl::Duration kAskEvery = absl::Milliseconds(100);
constexpr size_t kReadBytes = 1 << 16;

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

absl::StatusOr<Pipe> MakePipe() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return ErrnoError(errno, "pipe2 for a runner");
  return Pipe{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

// Owns the spawn structures of one call.
class SpawnPlan {
 public:
  SpawnPlan() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  posix_spawn_file_actions_t* actions() { return &actions_; }
  posix_spawnattr_t* attributes() { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

// Own process group (in the background own session, and so own scheduling group
// where the machine makes one for each), signals as new; standard input is the request, standard
// output goes nowhere, standard error is ours, descriptor 3 takes the report, all others are
// closed.
absl::StatusOr<pid_t> Spawn(const std::vector<std::string>& arguments, bool background,
                            int request_fd, int report_fd) {
  SpawnPlan plan;
  // The report goes to its place first: its target could be the request's descriptor.
  const UniqueFd request(fcntl(request_fd, F_DUPFD_CLOEXEC, kReportFd + 1));
  const UniqueFd report(fcntl(report_fd, F_DUPFD_CLOEXEC, kReportFd + 1));
  if (!request.valid() || !report.valid()) return ErrnoError(errno, "dup for a runner");
  posix_spawn_file_actions_adddup2(plan.actions(), request.get(), STDIN_FILENO);
  posix_spawn_file_actions_addopen(plan.actions(), STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(plan.actions(), report.get(), kReportFd);
  posix_spawn_file_actions_addclosefrom_np(plan.actions(), kReportFd + 1);
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  const int group = background ? POSIX_SPAWN_SETSID : POSIX_SPAWN_SETPGROUP;
  posix_spawnattr_setflags(plan.attributes(), static_cast<short>(group | POSIX_SPAWN_SETSIGMASK |
                                                                 POSIX_SPAWN_SETSIGDEF));
  posix_spawnattr_setpgroup(plan.attributes(), 0);
  posix_spawnattr_setsigmask(plan.attributes(), &none);
  posix_spawnattr_setsigdefault(plan.attributes(), &all);
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const ChildEnvironment environment;
  pid_t pid = -1;
  const int error =
      posix_spawn(&pid, argv[0], plan.actions(), plan.attributes(), argv.data(), environment.get());
  if (error != 0) return ErrnoError(error, absl::StrCat("starting ", arguments[0]));
  return pid;
}

class ProcessRunnerClient : public RunnerClient {
 public:
  ProcessRunnerClient(Clock* clock, pid_t pid, bool background, UniqueFd request, UniqueFd report)
      : clock_(clock),
        background_(background),
        pid_(pid),
        request_(std::move(request)),
        report_(std::move(report)) {}

  ~ProcessRunnerClient() override {
    if (pid_ <= 0) return;
    kill(-pid_, SIGKILL);
    kill(pid_, SIGKILL);
    Reap();
  }

  absl::StatusOr<std::unique_ptr<RunnerReport>> Run(const internal::v1::RunnerRequest& request,
                                                    absl::Duration timeout,
                                                    const RunnerHooks& hooks) override {
    if (used_) return absl::FailedPreconditionError("a runner takes one request");
    used_ = true;
    absl::StatusOr<std::unique_ptr<RunnerReport>> report = Exchange(request, timeout, hooks);
    // Standard input stays open until here: the runner ends itself when it closes.
    if (!report.ok()) {
      kill(-pid_, SIGKILL);
      kill(pid_, SIGKILL);
    }
    const int wait_status = Reap();
    if (report.ok()) return report;
    if (background_ && absl::IsDeadlineExceeded(report.status()) && core_time_ < timeout / 2) {
      return ErrorWithReason(
          absl::StatusCode::kUnavailable, "RUNNER_STARVED",
          absl::StrCat("the runner had a core for ", absl::FormatDuration(core_time_), " of ",
                       absl::FormatDuration(timeout),
                       ": other work on this machine goes first; repeat when it is less busy, or "
                       "give this worker a machine of its own"));
    }
    return Annotate(report.status(), DescribeEnd(wait_status));
  }

 private:
  absl::StatusOr<std::unique_ptr<RunnerReport>> Exchange(const internal::v1::RunnerRequest& request,
                                                         absl::Duration timeout,
                                                         const RunnerHooks& hooks) {
    const absl::Status sent = WriteAll(request_.get(), Frame(request.SerializeAsString()));
    if (!sent.ok()) {
      return absl::UnavailableError(
          absl::StrCat("the runner took no request: ", std::string(sent.message())));
    }
    absl::Duration now = clock_->Monotonic();
    const absl::Duration deadline = now + timeout;
    absl::Duration silent_after = now + absl::Seconds(limits::kRunnerSilentSeconds);
    std::string got;
    std::vector<char> chunk(kReadBytes);
    while (true) {
      now = clock_->Monotonic();
      if (now >= silent_after) {
        return ErrorWithReason(
            absl::StatusCode::kUnavailable, "RUNNER_SILENT",
            absl::StrCat("no sign of life within ", limits::kRunnerSilentSeconds, " s"));
      }
      if (now >= deadline) {
        return absl::DeadlineExceededError(
            absl::StrCat("no report within ", absl::FormatDuration(timeout)));
      }
      if (!hooks.keep_going()) return absl::CancelledError("the evaluation is no longer wanted");
      pollfd wait{report_.get(), POLLIN, 0};
      const int wait_ms =
          static_cast<int>(absl::ToInt64Milliseconds(std::min(deadline - now, kAskEvery)));
      if (poll(&wait, 1, std::max(1, wait_ms)) <= 0) continue;
      const ssize_t n = read(report_.get(), chunk.data(), chunk.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return ErrnoError(errno, "read of a runner's report");
      if (n == 0) return absl::UnavailableError("the runner ended without a report");
      got.append(chunk.data(), static_cast<size_t>(n));
      silent_after = now + absl::Seconds(limits::kRunnerSilentSeconds);
      ASSAY_ASSIGN_OR_RETURN(std::unique_ptr<RunnerReport> report, TakeMessages(hooks, &got));
      if (report != nullptr) return report;
    }
  }

  // Takes the whole frames off the front of `got`; the report, or null as long as there is none.
  static absl::StatusOr<std::unique_ptr<RunnerReport>> TakeMessages(const RunnerHooks& hooks,
                                                                    std::string* got) {
    while (got->size() >= kFrameHeaderBytes) {
      const size_t length = FrameLength(*got);
      if (length > limits::kReportBytesMax) {
        return absl::ResourceExhaustedError(absl::StrCat("a message of ", length, " bytes"));
      }
      if (got->size() < kFrameHeaderBytes + length) break;
      internal::v1::RunnerMessage message;
      if (!message.ParseFromArray(got->data() + kFrameHeaderBytes, static_cast<int>(length))) {
        return absl::DataLossError("the runner's message does not parse");
      }
      if (message.has_report()) return absl::WrapUnique(message.release_report());
      if (message.has_progress()) hooks.on_progress(message.progress());
      got->erase(0, kFrameHeaderBytes + length);
    }
    return nullptr;
  }

  int Reap() {
    int status = 0;
    rusage usage = {};
    while (pid_ > 0 && wait4(pid_, &status, 0, &usage) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    core_time_ =
        absl::DurationFromTimeval(usage.ru_utime) + absl::DurationFromTimeval(usage.ru_stime);
    return status;
  }

  static std::string DescribeEnd(int wait_status) {
    if (WIFSIGNALED(wait_status)) {
      return absl::StrCat("runner (ended by signal ", WTERMSIG(wait_status), ")");
    }
    return absl::StrCat("runner (exit code ", WEXITSTATUS(wait_status), ")");
  }

  Clock* const clock_;
  const bool background_;
  pid_t pid_;
  absl::Duration core_time_;  // of all its threads, once it was reaped
  UniqueFd request_;
  UniqueFd report_;
  bool used_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RunnerClient>> RunnerClient::Start(const RunnerOptions& options) {
  ASSAY_ASSIGN_OR_RETURN(Pipe request, MakePipe());
  ASSAY_ASSIGN_OR_RETURN(Pipe report, MakePipe());
  const std::vector<std::string> arguments = {options.runner_binary,
                                              "--guest",
                                              options.guest_binary,
                                              "--slot",
                                              absl::StrCat(options.slot),
                                              "--guests-ahead",
                                              absl::StrCat(options.guests),
                                              "--guest-core",
                                              absl::StrCat(options.guest_core),
                                              "--allow-unsandboxed",
                                              options.allow_unsandboxed ? "1" : "0",
                                              "--background",
                                              options.background ? "1" : "0"};
  ASSAY_ASSIGN_OR_RETURN(const pid_t pid, Spawn(arguments, options.background, request.read.get(),
                                                report.write.get()));
  return std::make_unique<ProcessRunnerClient>(options.clock, pid, options.background,
                                               std::move(request.write), std::move(report.read));
}

}  // namespace assay
