// Where a process may make control groups for its sandboxes: v2, or the v1 hierarchies of memory
// and pids, whichever the machine gives it.
#ifndef ASSAY_WORKER_SANDBOX_CGROUP_HOME_H_
#define ASSAY_WORKER_SANDBOX_CGROUP_HOME_H_

#include <string>

#include "worker/sandbox/cgroup_tree.h"

namespace assay {

// An empty path: that wall is missing, and the note says why and what to do.
struct CgroupHome {
  bool unified = false;     // v2: where both paths are set they are the same
  std::string memory_path;  // .../assay
  std::string pids_path;
  std::string memory_note;
  std::string pids_note;
};

// Looks for v2, else for v1, and makes .../assay under the group of process `pid`, which is this
// one but for tests. In v2 a group that hands controllers down holds no process: `pid` moves into
// .../assay-self, and so does everything beside it where the whole group is this service's own.
CgroupHome MakeCgroupHome(CgroupTree* tree, int pid);

// MakeCgroupHome of this machine, once, swept (SweepCgroups); cached. Thread-safe.
const CgroupHome& FindCgroupHome();

}  // namespace assay

#endif  // ASSAY_WORKER_SANDBOX_CGROUP_HOME_H_
