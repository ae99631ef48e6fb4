// Runs one command behind walls: bubblewrap (all namespaces), a seccomp filter, rlimits, cgroups
// where there are any.
#ifndef ASSAY_WORKER_SANDBOX_SANDBOX_H_
#define ASSAY_WORKER_SANDBOX_SANDBOX_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/file.h"

namespace assay {

enum class SyscallFilter {
  kCompile,  // deny list: what no compiler needs
  kGuest,    // what the guest may do until it narrows itself further
};

struct SandboxOptions {
  std::vector<std::string> arguments;    // argv; argv[0] is a path inside
  std::vector<std::string> environment;  // NAME=value; the sandbox inherits nothing else
  // Read-only binds beside /usr, /lib, /lib64, /bin: (path on the host, path inside).
  std::vector<std::pair<std::string, std::string>> read_only_binds;
  // Descriptors that the command gets: (descriptor here, number inside). 0, 1, 2 included; others
  // are closed.
  std::vector<std::pair<int, int>> descriptors;
  SyscallFilter filter = SyscallFilter::kGuest;
  int slot = 0;  // uid and cgroup; unique among live sandboxes of the machine
  int64_t memory_bytes_max = 0;
  int64_t tmpfs_bytes_max = 0;  // size of /tmp inside; 0: none
  int processes_max = 64;
  int64_t file_bytes_max = 0;   // RLIMIT_FSIZE
  int64_t cpu_seconds_max = 0;  // RLIMIT_CPU of each process
};

struct SandboxExit {
  int code = 0;               // exit code, or 128 + signal
  int signal = 0;             // of the command
  bool memory_limit = false;  // the cgroup killed something
  int64_t peak_memory_bytes = 0;
};

// A started sandbox. Destruction kills everything in it and waits until it is gone.
class Sandbox {
 public:
  static absl::StatusOr<std::unique_ptr<Sandbox>> Start(const SandboxOptions& options);
  virtual ~Sandbox() = default;
  // Process id of the sandbox's outer process here.
  virtual int pid() const = 0;
  // Process id of the command itself, as seen from here; for scheduling and accounting.
  virtual absl::StatusOr<int> CommandPid() = 0;
  virtual void Kill() = 0;
  // Waits for the end; DEADLINE_EXCEEDED when it is still alive then (it goes on).
  virtual absl::StatusOr<SandboxExit> Wait(absl::Duration timeout) = 0;
};

// Which walls this machine gives. Cached after the first call.
struct Walls {
  std::vector<std::string> standing;  // "bubblewrap", "userns", "seccomp", "uid", "network",
                                      // "rlimits", "cgroup-memory", "cgroup-pids", ...
  std::vector<std::string> missing;  // the same names
  std::vector<std::string> notes;    // one line for each missing one: why, and what to do
};
Walls ProbeWalls();

}  // namespace assay

#endif  // ASSAY_WORKER_SANDBOX_SANDBOX_H_
