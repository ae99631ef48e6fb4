#include "worker/agent/gpu_calibration.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "assay/v1/fleet.pb.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "worker/runner/child_environment.h"

namespace assay {
namespace {

constexpr size_t kCalibrationBytesMax = size_t{1} << 20;

absl::StatusOr<pid_t> Start(const GpuCalibrationOptions& options, int output) {
  const std::string ordinal = absl::StrCat(options.ordinal);
  char* const arguments[] = {const_cast<char*>(options.program.c_str()),
                             const_cast<char*>(options.driver.c_str()),
                             const_cast<char*>(ordinal.c_str()), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  // The worker blocks signals that end it.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t pid = -1;
  const ChildEnvironment environment;
  const int failed = posix_spawn(&pid, options.program.c_str(), &actions, &attributes, arguments,
                                 environment.get());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return ErrnoError(failed, absl::StrCat("start of ", options.program));
  return pid;
}

// False when the limit passed, or more came than a calibration has.
bool ReadUntilClosed(int fd, absl::Duration timeout, std::string* bytes) {
  const absl::Duration end = SystemClock()->Monotonic() + timeout;
  char buffer[16 << 10];
  while (bytes->size() <= kCalibrationBytesMax) {
    const absl::Duration left = end - SystemClock()->Monotonic();
    if (left <= absl::ZeroDuration()) return false;
    pollfd ready{fd, POLLIN, 0};
    if (poll(&ready, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1) <= 0) continue;
    const ssize_t got = read(fd, buffer, sizeof(buffer));
    if (got == 0) return true;
    if (got < 0 && errno != EINTR) return false;
    if (got > 0) bytes->append(buffer, static_cast<size_t>(got));
  }
  return false;
}

}  // namespace

absl::Status MeasureGpuCeilings(const GpuCalibrationOptions& options,
                                v1::Calibration* calibration) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoError(errno, "pipe");
  const UniqueFd from(ends[0]);
  UniqueFd to(ends[1]);
  ASSAY_ASSIGN_OR_RETURN(const pid_t pid, Start(options, to.get()));
  to.Reset();
  std::string bytes;
  const bool complete = ReadUntilClosed(from.get(), options.timeout, &bytes);
  if (!complete) kill(pid, SIGKILL);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!complete) {
    return absl::UnavailableError(absl::StrCat(options.program, " was still busy after ",
                                               absl::FormatDuration(options.timeout),
                                               "; is another process using the device?"));
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || !calibration->ParseFromString(bytes) ||
      calibration->points().empty()) {
    return absl::UnavailableError(
        absl::StrCat(options.program, " measured no ceilings of CUDA device ", options.ordinal,
                     "; its own message stands above in the log"));
  }
  return absl::OkStatus();
}

}  // namespace assay
