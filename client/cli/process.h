// Child processes of `assay up`: the server and the workers of this machine.
#ifndef ASSAY_CLIENT_CLI_PROCESS_H_
#define ASSAY_CLIENT_CLI_PROCESS_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/file.h"

namespace assay {

// The folder of the running executable.
absl::StatusOr<std::string> ExecutableDirectory();

// A child that gets SIGTERM when this process dies. Its stdout is read here; stderr is shared. Not
// thread-safe.
class ChildProcess {
 public:
  static absl::StatusOr<ChildProcess> Start(const std::vector<std::string>& arguments);
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();  // SIGKILL when it still runs

  // Waits for a line on stdout that starts with `prefix` and returns the rest. FAILED_PRECONDITION
  // when the child ends first, DEADLINE_EXCEEDED, CANCELLED when `*stop` becomes nonzero.
  absl::StatusOr<std::string> WaitForLine(std::string_view prefix, absl::Duration timeout,
                                          const volatile int* stop);

  // The wait status once it has ended; does not block.
  std::optional<int> Poll();
  void Signal(int signal);
  // Waits for the end; false at the time limit.
  bool Wait(absl::Duration timeout);
  pid_t pid() const { return pid_; }

 private:
  ChildProcess(pid_t pid, UniqueFd output) : pid_(pid), output_(std::move(output)) {}
  pid_t pid_ = -1;
  std::optional<int> ended_;
  UniqueFd output_;
  std::string buffer_;
};

}  // namespace assay

#endif  // ASSAY_CLIENT_CLI_PROCESS_H_
