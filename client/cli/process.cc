#include "client/cli/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "base/strings.h"

namespace assay {
namespace {

// How often waits look around; signals interrupt them anyway.
constexpr int kPollMs = 100;
constexpr size_t kLineBytesMax = 1 << 16;

}  // namespace

absl::StatusOr<std::string> ExecutableDirectory() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return ErrnoError(error.value(), "cannot read /proc/self/exe");
  return path.parent_path().string();
}

absl::StatusOr<ChildProcess> ChildProcess::Start(const std::vector<std::string>& arguments) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoError(errno, "pipe");
  UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return ErrnoError(errno, "fork");
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(127);
    // Signals of the terminal go to `assay up`, which stops its children in order.
    setpgid(0, 0);
    dup2(write_end.get(), STDOUT_FILENO);
    execv(argv[0], argv.data());
    _exit(127);
  }
  return ChildProcess(pid, std::move(read_end));
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      ended_(other.ended_),
      output_(std::move(other.output_)),
      buffer_(std::move(other.buffer_)) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(ended_, other.ended_);
  std::swap(output_, other.output_);
  std::swap(buffer_, other.buffer_);
  return *this;
}

ChildProcess::~ChildProcess() {
  if (pid_ < 0 || Poll().has_value()) return;
  Signal(SIGKILL);
  waitpid(pid_, nullptr, 0);
}

absl::StatusOr<std::string> ChildProcess::WaitForLine(std::string_view prefix,
                                                      absl::Duration timeout,
                                                      const volatile int* stop) {
  const absl::Time deadline = absl::Now() + timeout;
  for (;;) {
    size_t end;
    while ((end = buffer_.find('\n')) != std::string::npos) {
      const std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      if (std::string_view(line).substr(0, prefix.size()) == prefix) {
        return line.substr(prefix.size());
      }
    }
    if (*stop != 0) return absl::CancelledError("stopped");
    if (absl::Now() >= deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("no '", Av(prefix), "' within ", absl::FormatDuration(timeout)));
    }
    pollfd waiting{output_.get(), POLLIN, 0};
    if (poll(&waiting, 1, kPollMs) <= 0) continue;
    char bytes[4096];
    const ssize_t got = read(output_.get(), bytes, sizeof(bytes));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return absl::FailedPreconditionError("it ended before it was ready");
    if (buffer_.size() < kLineBytesMax) buffer_.append(bytes, static_cast<size_t>(got));
  }
}

std::optional<int> ChildProcess::Poll() {
  if (!ended_.has_value() && pid_ >= 0) {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) ended_ = status;
  }
  return ended_;
}

void ChildProcess::Signal(int signal) {
  if (!Poll().has_value()) kill(pid_, signal);
}

bool ChildProcess::Wait(absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  while (!Poll().has_value()) {
    if (absl::Now() >= deadline) return false;
    absl::SleepFor(absl::Milliseconds(10));
  }
  return true;
}

}  // namespace assay
