#include "worker/sandbox/cgroup_home.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "worker/sandbox/cgroup.h"

namespace assay {
namespace {

constexpr char kHomeName[] = "assay";
constexpr char kSelfLeaf[] = "assay-self";
constexpr char kMemory[] = "memory";
constexpr char kPids[] = "pids";
// Members may fork while they are moved.
constexpr int kVacateRoundsMax = 16;

std::vector<std::string> Words(const std::string& text) {
  return absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
}

bool HasWord(const std::string& text, const std::string& word) {
  const std::vector<std::string> words = Words(text);
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Mount point of the v1 hierarchy with `controller`, or of v2 when `controller` is empty.
std::string MountPoint(const CgroupTree& tree, const std::string& controller) {
  const std::string mounts = tree.Read("/proc/self/mountinfo");
  for (const absl::string_view line : absl::StrSplit(mounts, '\n')) {
    const std::vector<std::string> halves = absl::StrSplit(line, absl::MaxSplits(" - ", 1));
    if (halves.size() != 2) continue;
    const std::vector<std::string> left = absl::StrSplit(halves[0], ' ');
    const std::vector<std::string> right = absl::StrSplit(halves[1], ' ');
    if (left.size() < 5 || right.size() < 3) continue;
    if (controller.empty() ? right[0] == "cgroup2" : right[0] == "cgroup") {
      const std::vector<std::string> options = absl::StrSplit(right[2], ',');
      if (controller.empty() ||
          std::find(options.begin(), options.end(), controller) != options.end()) {
        return left[4];
      }
    }
  }
  return "";
}

constexpr char kHidden[] =
    "the control group of this process lies outside of its control group namespace, where it can "
    "make none; give the container a control group namespace of its own";

// Directory of this process's own group; the mount point when a container hides it.
struct Group {
  std::string path;
  bool hidden = false;  // outside of the namespace: from here nothing can be moved
};
Group OwnGroup(const CgroupTree& tree, const std::string& mount_point,
               const std::string& controller) {
  const std::string groups = tree.Read("/proc/self/cgroup");
  for (const absl::string_view line : absl::StrSplit(groups, '\n')) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const std::vector<std::string> names = absl::StrSplit(parts[1], ',');
    const bool matches = controller.empty()
                             ? parts[1].empty()
                             : std::find(names.begin(), names.end(), controller) != names.end();
    if (!matches) continue;
    // Outside of this process's cgroup namespace.
    if (absl::StartsWith(parts[2], "/..")) return {mount_point, true};
    std::string path = parts[2] == "/" ? mount_point : absl::StrCat(mount_point, parts[2]);
    const std::string leaf = absl::StrCat("/", kSelfLeaf);
    if (absl::EndsWith(path, leaf)) path.resize(path.size() - leaf.size());
    if (tree.IsDirectory(path)) return {path, false};
  }
  return {mount_point, false};
}

// Makes .../assay below `own`; an empty result leaves the reason in `note`.
std::string MakeHome(CgroupTree* tree, const std::string& own, std::string* note) {
  const std::string home = absl::StrCat(own, "/", kHomeName);
  const int error = tree->Make(home);
  if (error == 0 || error == EEXIST) return home;
  *note = absl::StrCat("cannot make ", home, ": ", std::strerror(error),
                       error == EROFS
                           ? "; give the container a cgroup namespace of its own and mount its "
                             "cgroups writable"
                           : "; run the worker as root or delegate the cgroup to it");
  return "";
}

// Whether a group can be made below `home`, with a file that limits.
bool TryLeaf(CgroupTree* tree, const std::string& home, int pid, const std::string& limit_file,
             std::string* note) {
  const std::string leaf = absl::StrCat(home, "/", pid, "-try");
  const int error = tree->Make(leaf);
  if (error != 0 && error != EEXIST) {
    *note = absl::StrCat("cannot make groups in ", home, ": ", std::strerror(error),
                         "; delegate the cgroup to the worker");
    return false;
  }
  const bool limits = !tree->Read(absl::StrCat(leaf, "/", limit_file)).empty();
  (void)tree->Remove(leaf);
  if (!limits) *note = absl::StrCat("groups in ", home, " have no ", limit_file);
  return limits;
}

std::vector<int> Members(const CgroupTree& tree, const std::string& group) {
  std::vector<int> pids;
  for (const std::string& word : Words(tree.Read(group + "/cgroup.procs"))) {
    int pid;
    // Those of other pid namespaces are 0 here, and cannot be moved.
    if (absl::SimpleAtoi(word, &pid) && pid > 0) pids.push_back(pid);
  }
  return pids;
}

// Empties `own` of processes, or says in `note` who is in the way.
bool Vacate(CgroupTree* tree, const std::string& own, bool whole, int pid, std::string* note) {
  const std::string leaf = absl::StrCat(own, "/", kSelfLeaf);
  if (const int error = tree->Make(leaf); error != 0 && error != EEXIST) {
    *note = absl::StrCat("cannot make ", leaf, ": ", std::strerror(error));
    return false;
  }
  for (int round = 0; round < kVacateRoundsMax; ++round) {
    const std::vector<int> members = Members(*tree, own);
    if (members.empty()) return true;
    const bool others = members.size() > 1 || members[0] != pid;
    if (others && !whole) {
      *note = absl::StrCat(own, " holds processes of others too (", members.size(),
                           " in all), so that it cannot hand memory and pids down; start the "
                           "worker in a delegated cgroup of its own (systemd: Delegate=yes)");
      return false;
    }
    for (const int member : members) {
      const int error = tree->Write(leaf + "/cgroup.procs", absl::StrCat(member));
      if (error != 0 && error != ESRCH) {
        *note = absl::StrCat("cannot move process ", member, " into ", leaf, ": ",
                             std::strerror(error));
        return false;
      }
    }
  }
  *note = absl::StrCat(own, " gets new processes faster than they can be moved");
  return false;
}

// Hands `controllers` down from `group` to its children. `whole`: all in it is this service's own.
bool HandDown(CgroupTree* tree, const std::string& group, const std::string& controllers,
              bool whole, int pid, std::string* note) {
  const std::string control = group + "/cgroup.subtree_control";
  const std::string have = tree->Read(control);
  std::vector<std::string> orders;
  for (const std::string& controller : Words(controllers)) {
    if (!HasWord(have, controller)) orders.push_back("+" + controller);
  }
  if (orders.empty()) return true;
  const std::string order = absl::StrJoin(orders, " ");
  int error = tree->Write(control, order);
  if (error == EBUSY) {
    if (!Vacate(tree, group, whole, pid, note)) return false;
    error = tree->Write(control, order);
  }
  if (error == 0) return true;
  *note = absl::StrCat("cannot write ", order, " to ", control, ": ", std::strerror(error),
                       "; start the worker in a delegated cgroup of its own (systemd: "
                       "Delegate=yes)");
  return false;
}

// False when v2 gives neither controller; then the notes say why.
bool FindUnified(CgroupTree* tree, int pid, CgroupHome* home) {
  const std::string mount_point = MountPoint(*tree, "");
  if (mount_point.empty()) return false;
  const Group group = OwnGroup(*tree, mount_point, "");
  if (group.hidden) {
    home->memory_note = home->pids_note = kHidden;
    return false;
  }
  const std::string& own = group.path;
  const std::string offered = tree->Read(own + "/cgroup.controllers");
  const bool memory = HasWord(offered, kMemory);
  const bool pids = HasWord(offered, kPids);
  const std::string absent = absl::StrCat(" is not in ", own,
                                          "/cgroup.controllers; have it delegated (systemd: "
                                          "Delegate=yes)");
  if (!memory) home->memory_note = kMemory + absent;
  if (!pids) home->pids_note = kPids + absent;
  // Groups below a threaded one hold threads of one process, and memory not at all. The root has no
  // type.
  const std::string type = tree->Read(own + "/cgroup.type");
  const bool threaded = !type.empty() && type != "domain\n";
  if (!memory && (!pids || threaded)) return false;
  // Some machines have the one in v1 and the other here; a sandbox's groups are all of one version.
  if (!memory && !MountPoint(*tree, kMemory).empty()) return false;
  home->unified = true;
  std::string note;
  if (threaded) {
    note = absl::StrCat(own, " is '", type.substr(0, type.find('\n')),
                        "', so that it cannot hold sandboxes; start the worker in another cgroup");
    home->memory_note = home->pids_note = note;
    return true;
  }
  const std::string controllers =
      absl::StrCat(memory ? kMemory : "", memory && pids ? " " : "", pids ? kPids : "");
  const bool whole = own == mount_point || tree->IsDelegated(own);
  std::string path;
  if (HandDown(tree, own, controllers, whole, pid, &note)) path = MakeHome(tree, own, &note);
  if (!path.empty() && (!HandDown(tree, path, controllers, false, pid, &note) ||
                        !TryLeaf(tree, path, pid, memory ? "memory.max" : "pids.max", &note))) {
    path.clear();
  }
  if (memory) {
    home->memory_path = path;
    home->memory_note = note;
  }
  if (pids) {
    home->pids_path = path;
    home->pids_note = note;
  }
  return true;
}

// `note` keeps what it says where there is no such hierarchy.
std::string FindLegacy(CgroupTree* tree, int pid, const std::string& controller,
                       const std::string& limit_file, std::string* note) {
  const std::string mount_point = MountPoint(*tree, controller);
  if (mount_point.empty()) {
    if (note->empty()) *note = absl::StrCat("no cgroup hierarchy with ", controller, " is mounted");
    return "";
  }
  note->clear();
  const Group group = OwnGroup(*tree, mount_point, controller);
  if (group.hidden) {
    *note = kHidden;
    return "";
  }
  const std::string home = MakeHome(tree, group.path, note);
  return !home.empty() && TryLeaf(tree, home, pid, limit_file, note) ? home : "";
}

CgroupHome MakeMachineHome() {
  MachineCgroupTree tree;
  CgroupHome home = MakeCgroupHome(&tree, getpid());
  if (!home.memory_path.empty()) SweepCgroups(home.memory_path);
  if (!home.pids_path.empty() && home.pids_path != home.memory_path) SweepCgroups(home.pids_path);
  return home;
}

}  // namespace

CgroupHome MakeCgroupHome(CgroupTree* tree, int pid) {
  CgroupHome home;
  if (FindUnified(tree, pid, &home)) return home;
  home.memory_path = FindLegacy(tree, pid, kMemory, "memory.limit_in_bytes", &home.memory_note);
  home.pids_path = FindLegacy(tree, pid, kPids, "pids.max", &home.pids_note);
  return home;
}

const CgroupHome& FindCgroupHome() {
  static const CgroupHome home = MakeMachineHome();
  return home;
}

}  // namespace assay
