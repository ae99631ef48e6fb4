// The part of a sandbox's start that runs between fork and exec. Inside Sandbox only.
#ifndef ASSAY_WORKER_SANDBOX_LAUNCH_H_
#define ASSAY_WORKER_SANDBOX_LAUNCH_H_

#include <sys/resource.h>
#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace assay {

struct LaunchPlan {
  std::string program;                           // executed by path
  std::vector<std::string> arguments;            // argv
  std::vector<std::string> environment;          // the whole environment
  std::vector<std::pair<int, int>> descriptors;  // (here, number there); all others are closed
  std::vector<int> cgroup_entries;               // "0" is written into each
  std::vector<std::pair<int, rlimit>> limits;    // (RLIMIT_*, value)
  int user = 0;                                  // uid and gid to drop to; 0: none
  int core = -1;                                 // CPU to pin to; -1: none
  bool fixed_addresses = false;                  // no address space randomisation, if possible
};

// Numbers of descriptors there stay below this.
inline constexpr int kLaunchDescriptorsMax = 480;

// Forks and executes. The child dies with the calling thread. Returns its pid once the program is
// running; UNAVAILABLE, with the step that failed, when it could not be started. Blocks for about a
// millisecond.
absl::StatusOr<pid_t> Launch(const LaunchPlan& plan);

}  // namespace assay

#endif  // ASSAY_WORKER_SANDBOX_LAUNCH_H_
