// Runs one command behind walls: bubblewrap (all namespaces), a seccomp filter, rlimits, cgroups
// where there are any.
//
// Inside there are /usr with its links (/bin, /lib, /lib64) read-only unless it was left out, the
// files and binds that were asked for, and nothing else: no /proc, /dev, /etc, /sys, home or
// network. A Sandbox is not thread-safe; several may live at once. Everything inside dies with the
// thread that called Start.
#ifndef ASSAY_WORKER_SANDBOX_SANDBOX_H_
#define ASSAY_WORKER_SANDBOX_SANDBOX_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/file.h"

namespace assay {

enum class SyscallFilter {
  kCompile,  // deny list: what no compiler needs
  kGuest,    // what the guest may do until it narrows itself further
  kNone,     // only for probing the other walls
};

// A file that is copied into the sandbox's own root; nothing of the host's path shows.
struct SandboxFile {
  int descriptor = -1;  // readable from its start; not consumed
  std::string path;     // inside
  int mode = 0444;
};

struct SandboxOptions {
  std::vector<std::string> arguments;    // argv; argv[0] is a path inside
  std::vector<std::string> environment;  // NAME=value; the sandbox inherits nothing else
  // Whether /usr, /lib, /lib64 and /bin are there. Without them a program needs its libraries as
  // binds: see program_files.h.
  bool toolchain = true;
  // Read-only binds beside them: (path on the host, path inside).
  std::vector<std::pair<std::string, std::string>> read_only_binds;
  std::vector<SandboxFile> files;
  // Descriptors that the command gets: (descriptor here, number inside). 0, 1, 2 included; others
  // are closed. Numbers inside are below 64; of 0, 1, 2 those not named are /dev/null.
  std::vector<std::pair<int, int>> descriptors;
  std::string working_directory = "/";
  SyscallFilter filter = SyscallFilter::kGuest;
  int slot = 0;  // uid; unique among live sandboxes of the machine, one of this process's (slots.h)
  int core = -1;  // CPU to pin to; -1: not pinned
  // By the cgroup; where there is none by RLIMIT_AS of each process, if address_space_fallback.
  int64_t memory_bytes_max = 0;
  bool address_space_fallback = true;
  int64_t tmpfs_bytes_max = 0;  // size of /tmp inside; 0: none
  int processes_max = 64;
  int64_t file_bytes_max = 0;   // RLIMIT_FSIZE
  int64_t cpu_seconds_max = 0;  // RLIMIT_CPU of each process, which ends it by SIGXCPU
  int64_t stack_bytes_max = int64_t{64} << 20;
  // Without address space randomisation, where the machine allows it: precompiled headers of NVRTC
  // are images of memory. Never for guests.
  bool fixed_addresses = false;
};

struct SandboxExit {
  int code = 0;               // exit code, or 128 + signal
  int signal = 0;             // of the command
  bool memory_limit = false;  // its own cgroup's limit killed something
  bool machine_oom = false;   // something was killed for memory, but not by its own limit
  // Its own cgroup refused to start a process.
  bool processes_limit = false;
  int64_t peak_memory_bytes = 0;
};

// A started sandbox. Destruction kills everything in it and waits until it is gone.
class Sandbox {
 public:
  // UNAVAILABLE when the machine cannot (no bubblewrap, no user namespaces, fork failed).
  static absl::StatusOr<std::unique_ptr<Sandbox>> Start(const SandboxOptions& options);
  virtual ~Sandbox() = default;
  // Process id of the sandbox's outer process here.
  virtual int pid() const = 0;
  // Process id of the command itself, as seen from here; for scheduling and accounting. Blocks
  // until the sandbox is set up, a few milliseconds.
  virtual absl::StatusOr<int> CommandPid() = 0;
  virtual void Kill() = 0;
  // Waits for the end; DEADLINE_EXCEEDED when it is still alive then (it goes on). UNAVAILABLE when
  // bubblewrap ended without ever starting the command. When it returns an exit, no process of the
  // sandbox is left and its cgroup is gone.
  virtual absl::StatusOr<SandboxExit> Wait(absl::Duration timeout) = 0;
  // A descriptor that becomes readable when the outer process ends.
  virtual int end_descriptor() const = 0;
  // Walls that stand around this sandbox, and those that are missing; names as in Walls.
  virtual const std::vector<std::string>& walls() const = 0;
  virtual const std::vector<std::string>& missing_walls() const = 0;
};

// Names of walls.
inline constexpr char kWallBubblewrap[] = "bubblewrap";
inline constexpr char kWallUserNamespace[] = "userns";
inline constexpr char kWallNetwork[] = "network";
inline constexpr char kWallFiles[] = "files";
inline constexpr char kWallSeccomp[] = "seccomp";
inline constexpr char kWallUid[] = "uid";
inline constexpr char kWallRlimits[] = "rlimits";
inline constexpr char kWallCgroupMemory[] = "cgroup-memory";
inline constexpr char kWallCgroupPids[] = "cgroup-pids";

// First user id of the sandboxes; slot n runs as this plus n when the worker is root.
inline constexpr int kSandboxUidFirst = 64000;
inline constexpr int kSandboxSlotsMax = 1024;

// How a wall withstood what was tried against it.
enum class WallState {
  kStanding,
  kWeaker,  // something else stands in its place; the note says what
  kMissing,
};
const char* WallStateName(WallState state);  // "STANDING", "WEAKER", "MISSING"

struct WallProbe {
  std::string name;  // of those above
  WallState state = WallState::kMissing;
  std::string note;  // of one that does not stand: why, what stands instead, and what to do
};

// One for each wall: it is tried from inside and from outside, by something that it must refuse.
// Cached after the first call.
std::vector<WallProbe> ProbeWalls();

}  // namespace assay

#endif  // ASSAY_WORKER_SANDBOX_SANDBOX_H_
