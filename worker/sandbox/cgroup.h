// Control groups of single sandboxes, v2 or v1 (memory and pids hierarchies); where they are made
// is in cgroup_home.h.
#ifndef ASSAY_WORKER_SANDBOX_CGROUP_H_
#define ASSAY_WORKER_SANDBOX_CGROUP_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/file.h"

namespace assay {

// Kills all members of one group of this process: by cgroup.kill where there is one, else each that
// this process can see.
void KillCgroup(const std::string& path);

// Ends what processes that are gone left in the groups of `home` (a path of CgroupHome), and
// removes these groups; one whose members are still going stays for the next sweep. bubblewrap
// itself stays behind when the process that starts it is killed before it has tied its child's life
// to its own.
void SweepCgroups(const std::string& home);

// The groups of one sandbox. Destruction kills what is left in them and removes them.
class Cgroup {
 public:
  struct Usage {
    bool memory_limit = false;     // killed by its own limit
    bool machine_oom = false;      // killed by another
    bool processes_limit = false;  // a fork was refused
    int64_t peak_bytes = 0;
  };

  // Limits of 0 are not set. Where the machine gives no groups the result is empty, and valid.
  static absl::StatusOr<Cgroup> Create(int slot, int64_t memory_bytes_max, int processes_max);
  // Takes over empty groups that are there, and sets their limits; an empty path is no group.
  static absl::StatusOr<Cgroup> Adopt(const std::string& memory_path, const std::string& pids_path,
                                      bool unified, int64_t memory_bytes_max, int processes_max);
  Cgroup(Cgroup&& other) noexcept;
  Cgroup& operator=(Cgroup&&) = delete;
  ~Cgroup() { Remove(); }

  // Descriptors into which a process writes "0" to enter.
  std::vector<int> entry_descriptors() const;
  bool has_memory() const { return !memory_path_.empty(); }
  bool has_pids() const { return !pids_path_.empty(); }
  Usage ReadUsage() const;
  // Kills what is left, waits until it is gone (bounded) and removes the groups.
  void Remove();

 private:
  Cgroup() = default;
  absl::Status LimitMemory(int64_t bytes_max);
  absl::Status LimitPids(int processes_max);

  bool unified_ = false;
  int64_t memory_bytes_max_ = 0;
  std::string memory_path_;
  std::string pids_path_;  // the same as memory_path_ in v2
  UniqueFd memory_entry_;
  UniqueFd pids_entry_;
};

}  // namespace assay

#endif  // ASSAY_WORKER_SANDBOX_CGROUP_H_
