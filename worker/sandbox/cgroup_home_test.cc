// Finding a home for groups on a kernel of the test's own, which holds to the rules of the real
// one.
#include "worker/sandbox/cgroup_home.h"

#include <algorithm>
#include <cerrno>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kSelf = 100;
constexpr char kMount[] = "/sys/fs/cgroup";
constexpr char kService[] = "/sys/fs/cgroup/system.slice/assay.service";

// The part of cgroup v2 that decides who may do what, and v1 hierarchies as plain folders. Rules:
// controllers reach a group only through its parent's subtree_control; a group other than the root
// that hands domain controllers down holds no process, and takes none; below a threaded group
// nothing is a valid domain; only an empty group without children can be removed.
class FakeKernel : public CgroupTree {
 public:
  struct Group {
    std::set<std::string> subtree;
    std::set<int> procs;
    std::string type = "domain";
    bool delegated = false;
  };

  void MountUnified() {
    mounts_ += absl::StrCat("31 23 0:28 / ", kMount, " rw,nosuid shared:9 - cgroup2 cgroup2 rw\n");
    groups_[kMount];
  }
  void MountLegacy(const std::string& controller, const std::string& group) {
    const std::string mount = absl::StrCat(kMount, "/", controller);
    mounts_ += absl::StrCat("35 31 0:32 / ", mount, " rw - cgroup cgroup rw,", controller, "\n");
    membership_ += absl::StrCat("4:", controller, ":", group, "\n");
    legacy_[mount] = controller;
    if (group != "/") legacy_[mount + group] = controller;
  }
  // Puts this process into a group of v2, made with all groups above, which hand `controllers` down
  // to it.
  void Enter(const std::string& group, const std::set<std::string>& controllers) {
    std::string path = kMount;
    for (const absl::string_view part : absl::StrSplit(group, '/', absl::SkipEmpty())) {
      groups_[path].subtree.insert(controllers.begin(), controllers.end());
      absl::StrAppend(&path, "/", part);
      groups_[path];
    }
    groups_[path].procs.insert(kSelf);
    membership_ += absl::StrCat("0::", group, "\n");
  }

  std::string Read(const std::string& path) const override {
    if (path == "/proc/self/mountinfo") return mounts_;
    if (path == "/proc/self/cgroup") return membership_;
    const auto [name, file] = Split(path);
    if (const auto legacy = legacy_.find(name); legacy != legacy_.end()) {
      const bool has =
          legacy->second == "memory" ? file == "memory.limit_in_bytes" : file == "pids.max";
      return has ? "max\n" : "";
    }
    const auto found = groups_.find(name);
    if (found == groups_.end()) return "";
    const Group& group = found->second;
    const bool root = name == kMount && real_root;
    if (file == "cgroup.controllers") return absl::StrJoin(Controllers(name), " ") + "\n";
    if (file == "cgroup.subtree_control") return absl::StrJoin(group.subtree, " ") + "\n";
    if (file == "cgroup.type") return root ? "" : group.type + "\n";
    if (file == "cgroup.procs") return absl::StrJoin(group.procs, "\n") + "\n";
    const bool limits = (file == "memory.max" && Controllers(name).contains("memory")) ||
                        (file == "pids.max" && Controllers(name).contains("pids"));
    return limits && !root ? "max\n" : "";
  }

  int Write(const std::string& path, const std::string& text) override {
    if (read_only) return EROFS;
    const auto [name, file] = Split(path);
    const auto found = groups_.find(name);
    if (found == groups_.end()) return ENOENT;
    if (file == "cgroup.procs") return Move(name, text);
    return file == "cgroup.subtree_control" ? Order(name, text) : ENOENT;
  }

  int Make(const std::string& path) override {
    const auto [parent, name] = Split(path);
    if (read_only) return EROFS;
    if (legacy_.contains(parent)) {
      if (legacy_.contains(path)) return EEXIST;
      legacy_[path] = legacy_[parent];
      return 0;
    }
    if (!groups_.contains(parent)) return ENOENT;
    if (groups_.contains(path)) return EEXIST;
    if (!may_make) return EACCES;
    groups_[path].type = groups_[parent].type == "domain" ? "domain" : "domain invalid";
    return 0;
  }

  int Remove(const std::string& path) override {
    if (legacy_.erase(path) > 0) return 0;
    if (!groups_.contains(path)) return ENOENT;
    if (!groups_[path].procs.empty()) return EBUSY;
    for (const auto& [name, group] : groups_) {
      if (name.starts_with(path + "/")) return EBUSY;
    }
    groups_.erase(path);
    return 0;
  }

  bool IsDirectory(const std::string& path) const override {
    return groups_.contains(path) || legacy_.contains(path);
  }
  bool IsDelegated(const std::string& path) const override {
    const auto found = groups_.find(path);
    return found != groups_.end() && found->second.delegated;
  }

  Group& group(const std::string& path) { return groups_[path]; }
  const std::map<std::string, std::string>& legacy() const { return legacy_; }

  bool real_root = true;  // or that of a container, which the rules hold for
  bool read_only = false;
  bool may_make = true;
  std::function<void()> on_move;  // after a process has moved

 private:
  static std::pair<std::string, std::string> Split(const std::string& path) {
    const size_t slash = path.rfind('/');
    return {path.substr(0, slash), path.substr(slash + 1)};
  }
  std::set<std::string> Controllers(const std::string& name) const {
    if (name == kMount) return root_controllers;
    const auto parent = groups_.find(Split(name).first);
    return parent == groups_.end() ? std::set<std::string>() : parent->second.subtree;
  }

  int Move(const std::string& name, const std::string& text) {
    int pid = 0;
    if (!absl::SimpleAtoi(text, &pid)) return EINVAL;
    if (pid == 0) pid = kSelf;
    Group& to = groups_[name];
    if (to.type != "domain") return EOPNOTSUPP;
    if (!to.subtree.empty() && !(name == kMount && real_root)) return EBUSY;
    for (auto& [other, from] : groups_) {
      if (from.procs.erase(pid) == 0) continue;
      to.procs.insert(pid);
      if (on_move) on_move();
      return 0;
    }
    return ESRCH;
  }

  int Order(const std::string& name, const std::string& text) {
    Group& group = groups_[name];
    bool domain = false;
    std::set<std::string> wanted;
    for (absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
      if (!absl::ConsumePrefix(&word, "+")) return EINVAL;
      if (!Controllers(name).contains(std::string(word))) return ENOENT;
      domain |= word == "memory";
      wanted.insert(std::string(word));
    }
    const bool root = name == kMount && real_root;
    if (group.type == "domain invalid") return EOPNOTSUPP;
    if (domain && group.type != "domain") return EOPNOTSUPP;
    if (!root && !group.procs.empty()) return EBUSY;
    group.subtree.insert(wanted.begin(), wanted.end());
    return 0;
  }

 public:
  std::set<std::string> root_controllers = {"cpu", "io", "memory", "pids"};

 private:
  std::string mounts_ = "20 1 0:19 / /proc rw - proc proc rw\n";
  std::string membership_;
  std::map<std::string, Group> groups_;
  std::map<std::string, std::string> legacy_;
};

class CgroupHomeTest : public ::testing::Test {
 protected:
  // Alone in a service.
  void SetUp() override {
    kernel_.MountUnified();
    kernel_.Enter("/system.slice/assay.service", {"memory", "pids"});
  }

  // Both walls below `own`: a sandbox's group can be made, is limited, and can be entered.
  void ExpectHome(const CgroupHome& home, const std::string& own) {
    EXPECT_TRUE(home.unified);
    EXPECT_EQ(home.memory_path, own + "/assay") << home.memory_note;
    EXPECT_EQ(home.pids_path, own + "/assay") << home.pids_note;
    const std::string sandbox = home.memory_path + "/100-1-0";
    EXPECT_EQ(kernel_.Make(sandbox), 0);
    EXPECT_EQ(kernel_.Read(sandbox + "/memory.max"), "max\n");
    EXPECT_EQ(kernel_.Read(sandbox + "/pids.max"), "max\n");
    EXPECT_EQ(kernel_.Write(sandbox + "/cgroup.procs", "0"), 0);
    EXPECT_THAT(kernel_.group(sandbox).procs, ElementsAre(kSelf));
    EXPECT_EQ(kernel_.Remove(home.memory_path + "/100-try"), ENOENT) << "nothing is left";
  }

  FakeKernel kernel_;
};

TEST_F(CgroupHomeTest, AloneInItsGroupItStepsAside) {
  ExpectHome(MakeCgroupHome(&kernel_, kSelf), kService);
}

// A second worker of the service, and a worker that is started again.
TEST_F(CgroupHomeTest, WhatIsThereAlreadyIsUsed) {
  (void)MakeCgroupHome(&kernel_, kSelf);
  EXPECT_THAT(kernel_.group(absl::StrCat(kService, "/assay-self")).procs, ElementsAre(kSelf));
  FakeKernel other;
  other.MountUnified();
  other.Enter("/system.slice/assay.service/assay-self", {"memory", "pids"});
  other.group(absl::StrCat(kService, "/assay"));
  const CgroupHome home = MakeCgroupHome(&other, kSelf);
  EXPECT_EQ(home.memory_path, absl::StrCat(kService, "/assay")) << home.memory_note;
}

// `assay up` in a unit: its server and the command itself are there too, and fork meanwhile.
TEST_F(CgroupHomeTest, ADelegatedGroupIsEmptiedAsAWhole) {
  kernel_.group(kService).delegated = true;
  kernel_.group(kService).procs = {98, 99, kSelf};
  int forks = 3;
  kernel_.on_move = [&] {
    if (forks > 0) kernel_.group(kService).procs.insert(200 + forks--);
  };
  const CgroupHome home = MakeCgroupHome(&kernel_, kSelf);
  EXPECT_THAT(kernel_.group(kService).procs, IsEmpty());
  EXPECT_EQ(kernel_.group(absl::StrCat(kService, "/assay-self")).procs.size(), 6u);
  kernel_.on_move = nullptr;
  ExpectHome(home, kService);
}

TEST_F(CgroupHomeTest, NobodyElseIsMovedWhereTheGroupIsNotItsOwn) {
  kernel_.group(kService).procs = {98, kSelf};
  const CgroupHome home = MakeCgroupHome(&kernel_, kSelf);
  EXPECT_EQ(home.memory_path, "");
  EXPECT_EQ(home.pids_path, "");
  EXPECT_THAT(home.memory_note, HasSubstr("processes of others"));
  EXPECT_THAT(home.memory_note, HasSubstr("Delegate=yes"));
  EXPECT_EQ(home.pids_note, home.memory_note);
  EXPECT_THAT(kernel_.group(kService).procs, ElementsAre(98, kSelf));
}

TEST_F(CgroupHomeTest, AGroupThatForksForEverIsGivenUp) {
  kernel_.group(kService).delegated = true;
  int next = 200;
  kernel_.on_move = [&] { kernel_.group(kService).procs.insert(next++); };
  const CgroupHome home = MakeCgroupHome(&kernel_, kSelf);
  EXPECT_EQ(home.memory_path, "");
  EXPECT_THAT(home.memory_note, HasSubstr("faster than they can be moved"));
}

TEST(CgroupHomeRootTest, TheRootMayHoldProcesses) {
  FakeKernel kernel;
  kernel.MountUnified();
  kernel.Enter("/", {});
  kernel.group(kMount).procs = {1, 2, kSelf};
  const CgroupHome home = MakeCgroupHome(&kernel, kSelf);
  EXPECT_EQ(home.memory_path, absl::StrCat(kMount, "/assay")) << home.memory_note;
  EXPECT_THAT(kernel.group(kMount).procs, ElementsAre(1, 2, kSelf));
}

// The root of a container's namespace is no root to the kernel; all in it belongs to the container.
TEST(CgroupHomeRootTest, TheRootOfAContainerIsEmptied) {
  FakeKernel kernel;
  kernel.real_root = false;
  kernel.MountUnified();
  kernel.Enter("/", {});
  kernel.group(kMount).procs = {1, 7, kSelf};
  const CgroupHome home = MakeCgroupHome(&kernel, kSelf);
  EXPECT_EQ(home.memory_path, absl::StrCat(kMount, "/assay")) << home.memory_note;
  EXPECT_THAT(kernel.group(kMount).procs, IsEmpty());
}

// As /proc/self/cgroup shows a group that lies outside of the namespace: nothing can be moved from
// there, and what is visible holds others.
TEST(CgroupHomeRootTest, AGroupThatIsNotVisibleHoldsNoSandboxes) {
  for (const bool handed_down : {true, false}) {
    FakeKernel kernel;
    kernel.real_root = false;
    kernel.MountUnified();
    kernel.Enter("/../../system.slice/x",
                 handed_down ? std::set<std::string>{"memory", "pids"} : std::set<std::string>{});
    kernel.group(kMount).procs = {1, 7};
    const CgroupHome home = MakeCgroupHome(&kernel, kSelf);
    EXPECT_EQ(home.memory_path, "");
    EXPECT_EQ(home.pids_path, "");
    EXPECT_THAT(home.memory_note, HasSubstr("outside of its control group namespace"));
    EXPECT_THAT(kernel.group(kMount).procs, ::testing::UnorderedElementsAre(1, 7));
  }
}

TEST_F(CgroupHomeTest, AThreadedGroupHoldsNoSandboxes) {
  for (const char* type : {"threaded", "domain threaded", "domain invalid"}) {
    kernel_.group(kService).type = type;
    const CgroupHome home = MakeCgroupHome(&kernel_, kSelf);
    EXPECT_EQ(home.memory_path, "") << type;
    EXPECT_EQ(home.pids_path, "") << type;
    EXPECT_THAT(home.memory_note, HasSubstr(type));
  }
}

TEST_F(CgroupHomeTest, OneControllerIsBetterThanNone) {
  for (const std::string controller : {"memory", "pids"}) {
    FakeKernel kernel;
    kernel.MountUnified();
    kernel.Enter("/system.slice/assay.service", {"cpu", controller});
    const CgroupHome home = MakeCgroupHome(&kernel, kSelf);
    const bool memory = controller == "memory";
    EXPECT_TRUE(home.unified);
    EXPECT_EQ((memory ? home.memory_path : home.pids_path), absl::StrCat(kService, "/assay"));
    EXPECT_EQ((memory ? home.pids_path : home.memory_path), "");
    EXPECT_THAT(memory ? home.pids_note : home.memory_note, HasSubstr("cgroup.controllers"));
  }
}

TEST_F(CgroupHomeTest, WhatIsForbiddenIsSaid) {
  kernel_.read_only = true;
  EXPECT_THAT(MakeCgroupHome(&kernel_, kSelf).memory_note, HasSubstr("Read-only file system"));
  kernel_.read_only = false;
  kernel_.may_make = false;
  EXPECT_THAT(MakeCgroupHome(&kernel_, kSelf).memory_note, HasSubstr("Permission denied"));
}

// As on a machine that mounts v2 beside v1: the controllers are with v1.
TEST(CgroupHomeLegacyTest, UnifiedWithoutTheControllersIsLeftForLegacy) {
  FakeKernel kernel;
  kernel.root_controllers = {"hugetlb"};
  kernel.MountUnified();
  kernel.Enter("/", {});
  CgroupHome home = MakeCgroupHome(&kernel, kSelf);
  EXPECT_FALSE(home.unified);
  EXPECT_THAT(home.memory_note, HasSubstr("memory is not in"));
  EXPECT_THAT(home.pids_note, HasSubstr("pids is not in"));

  kernel.MountLegacy("memory", "/");
  kernel.MountLegacy("pids", "/job");
  home = MakeCgroupHome(&kernel, kSelf);
  EXPECT_FALSE(home.unified);
  EXPECT_EQ(home.memory_path, absl::StrCat(kMount, "/memory/assay")) << home.memory_note;
  EXPECT_EQ(home.pids_path, absl::StrCat(kMount, "/pids/job/assay")) << home.pids_note;
  EXPECT_EQ(home.memory_note, "");
  EXPECT_EQ(home.pids_note, "");
}

TEST(CgroupHomeLegacyTest, MemoryIsWorthMoreThanProcesses) {
  FakeKernel kernel;
  kernel.root_controllers = {"pids"};
  kernel.MountUnified();
  kernel.Enter("/", {});
  kernel.MountLegacy("memory", "/");
  const CgroupHome home = MakeCgroupHome(&kernel, kSelf);
  EXPECT_FALSE(home.unified);
  EXPECT_EQ(home.memory_path, absl::StrCat(kMount, "/memory/assay")) << home.memory_note;
  EXPECT_EQ(home.pids_path, "");
  EXPECT_FALSE(home.pids_note.empty());
}

TEST(CgroupHomeLegacyTest, AMachineWithoutGroupsIsSaid) {
  FakeKernel kernel;
  const CgroupHome home = MakeCgroupHome(&kernel, kSelf);
  EXPECT_EQ(home.memory_path, "");
  EXPECT_THAT(home.memory_note, HasSubstr("no cgroup hierarchy with memory"));
  EXPECT_THAT(home.pids_note, HasSubstr("no cgroup hierarchy with pids"));
}

}  // namespace
}  // namespace assay
