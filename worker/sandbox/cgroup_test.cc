// Control groups on a fake tree: what is written where, and what usage is read as. What a kernel
// does with it is in sandbox_test.cc, for the version that the machine has.
#include "worker/sandbox/cgroup.h"

#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMemoryMax = 64 << 20;

class CgroupTreeTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    const std::string whole = absl::StrCat(directory_.path(), path);
    ASSERT_OK(CreateDirectories(whole.substr(0, whole.rfind('/'))));
    ASSERT_OK(WriteFileAtomically(whole, text));
  }

  std::string Read(const std::string& path) {
    const absl::StatusOr<std::string> text =
        ReadFile(absl::StrCat(directory_.path(), path), 1 << 16);
    return text.ok() ? *text : std::string(text.status().message());
  }

  // A process in `group` of a machine with v2; the group's files as the kernel would make them.
  void MakeUnified(const std::string& group, const std::string& controllers) {
    Write("/proc/self/mountinfo",
          "20 1 0:19 / /proc rw - proc proc rw\n"
          "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
    Write("/proc/self/cgroup", absl::StrCat("0::", group, "\n"));
    Write("/sys/fs/cgroup/service/cgroup.controllers", controllers);
    for (const char* made : {"/sys/fs/cgroup/service", "/sys/fs/cgroup/service/assay"}) {
      Write(absl::StrCat(made, "/cgroup.subtree_control"), "");
    }
    ASSERT_OK(CreateDirectories(absl::StrCat(directory_.path(), "/sys/fs/cgroup", group)));
  }

  // An empty group with these files.
  std::string MakeGroup(const std::map<std::string, std::string>& files) {
    for (const auto& [name, text] : files) Write("/group/" + name, text);
    return absl::StrCat(directory_.path(), "/group");
  }

  // The kernel's files go with their group; these must be gone first.
  void Empty(const std::string& path) {
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      ASSERT_EQ(unlink(entry.path().c_str()), 0);
    }
  }

  TemporaryDirectory directory_ = *TemporaryDirectory::Create("cgroup-test");
};

TEST_F(CgroupTreeTest, UnifiedHandsBothControllersDownTwice) {
  MakeUnified("/service", "cpuset cpu io memory pids\n");
  const CgroupHome home = MakeCgroupHome(directory_.path());
  EXPECT_TRUE(home.unified);
  const std::string path = directory_.path() + "/sys/fs/cgroup/service/assay";
  EXPECT_EQ(home.memory_path, path) << home.memory_note;
  EXPECT_EQ(home.pids_path, path);
  EXPECT_EQ(Read("/sys/fs/cgroup/service/cgroup.subtree_control"), "+memory +pids");
  EXPECT_EQ(Read("/sys/fs/cgroup/service/assay/cgroup.subtree_control"), "+memory +pids");
}

TEST_F(CgroupTreeTest, AProcessThatMovedIntoItsLeafFindsTheGroupAbove) {
  MakeUnified("/service/assay-self", "memory pids\n");
  EXPECT_EQ(MakeCgroupHome(directory_.path()).memory_path,
            directory_.path() + "/sys/fs/cgroup/service/assay");
}

TEST_F(CgroupTreeTest, AGroupThatIsNotDelegatedIsSaid) {
  MakeUnified("/service", "memory pids\n");
  std::filesystem::remove(directory_.path() + "/sys/fs/cgroup/service/cgroup.subtree_control");
  const CgroupHome home = MakeCgroupHome(directory_.path());
  EXPECT_TRUE(home.unified);
  EXPECT_EQ(home.memory_path, "");
  EXPECT_THAT(home.memory_note, HasSubstr("delegated cgroup"));
  EXPECT_EQ(home.pids_note, home.memory_note);
}

// As on a machine that mounts v2 beside v1: the controllers are with v1.
TEST_F(CgroupTreeTest, UnifiedWithoutTheControllersIsLeftForLegacy) {
  MakeUnified("/service", "cpu\n");
  CgroupHome home = MakeCgroupHome(directory_.path());
  EXPECT_FALSE(home.unified);
  EXPECT_THAT(home.memory_note, HasSubstr("no cgroup hierarchy with memory"));
  EXPECT_THAT(home.pids_note, HasSubstr("no cgroup hierarchy with pids"));

  Write("/proc/self/mountinfo",
        "31 23 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
        "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        "39 31 0:36 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n");
  Write("/proc/self/cgroup", "9:pids:/job\n4:memory:/\n0::/\n");
  ASSERT_OK(CreateDirectories(directory_.path() + "/sys/fs/cgroup/memory"));
  ASSERT_OK(CreateDirectories(directory_.path() + "/sys/fs/cgroup/pids/job"));
  home = MakeCgroupHome(directory_.path());
  EXPECT_FALSE(home.unified);
  EXPECT_EQ(home.memory_path, directory_.path() + "/sys/fs/cgroup/memory/assay");
  EXPECT_EQ(home.pids_path, directory_.path() + "/sys/fs/cgroup/pids/job/assay");
}

TEST_F(CgroupTreeTest, UnifiedLimitsAreWrittenIntoOneGroup) {
  const std::string path = MakeGroup(
      {{"cgroup.procs", ""}, {"memory.max", ""}, {"memory.swap.max", ""}, {"pids.max", ""}});
  ASSERT_OK_AND_ASSIGN(Cgroup group, Cgroup::Adopt(path, path, true, kMemoryMax, 17));
  EXPECT_TRUE(group.has_memory());
  EXPECT_TRUE(group.has_pids());
  EXPECT_EQ(group.entry_descriptors().size(), 1u);
  EXPECT_EQ(Read("/group/memory.max"), absl::StrCat(kMemoryMax));
  EXPECT_EQ(Read("/group/memory.swap.max"), "0");
  EXPECT_EQ(Read("/group/pids.max"), "17");
  Empty(path);
  group.Remove();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(CgroupTreeTest, LegacyLimitsAreWrittenToo) {
  const std::string path = MakeGroup(
      {{"cgroup.procs", ""}, {"memory.limit_in_bytes", ""}, {"memory.memsw.limit_in_bytes", ""}});
  ASSERT_OK_AND_ASSIGN(Cgroup group, Cgroup::Adopt(path, "", false, kMemoryMax, 17));
  EXPECT_FALSE(group.has_pids());
  EXPECT_EQ(Read("/group/memory.limit_in_bytes"), absl::StrCat(kMemoryMax));
  EXPECT_EQ(Read("/group/memory.memsw.limit_in_bytes"), absl::StrCat(kMemoryMax));
  Empty(path);
}

TEST_F(CgroupTreeTest, AGroupThatCannotBeEnteredIsAnErrorAndGoes) {
  const std::string path = directory_.path() + "/group";
  ASSERT_OK(CreateDirectories(path));
  EXPECT_THAT(Cgroup::Adopt(path, path, true, kMemoryMax, 17).status().message(),
              HasSubstr("/group/cgroup.procs"));
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(CgroupTreeTest, WhoWasOutOfMemoryIsReadFromTheGroup) {
  const struct {
    const char* name;
    bool unified;
    std::map<std::string, std::string> files;
    bool memory_limit;
    bool machine_oom;
    int64_t peak_bytes;
  } cases[] = {
      {"v2, nothing",
       true,
       {{"memory.events", "low 0\nhigh 0\nmax 3\noom 0\noom_kill 0\n"}, {"memory.peak", "4096\n"}},
       false,
       false,
       4096},
      {"v2, own limit",
       true,
       {{"memory.events", "low 0\nhigh 0\nmax 9\noom 1\noom_kill 1\n"}, {"memory.peak", "4096\n"}},
       true,
       false,
       4096},
      {"v2, the machine",
       true,
       {{"memory.events", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 2\n"}, {"memory.peak", "4096\n"}},
       false,
       true,
       4096},
      // Before Linux 5.19.
      {"v2, no peak", true, {{"memory.events", "oom 0\noom_kill 1\n"}}, false, true, 0},
      {"v1, own limit",
       false,
       {{"memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"},
        {"memory.failcnt", "12\n"},
        {"memory.max_usage_in_bytes", "8192\n"}},
       true,
       false,
       8192},
      {"v1, the machine",
       false,
       {{"memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"},
        {"memory.failcnt", "0\n"},
        {"memory.max_usage_in_bytes", "8192\n"}},
       false,
       true,
       8192},
  };
  for (const auto& test : cases) {
    SCOPED_TRACE(test.name);
    std::map<std::string, std::string> files = test.files;
    for (const char* name : {"cgroup.procs", "memory.max", "memory.limit_in_bytes"}) {
      files[name] = "";
    }
    const std::string path = MakeGroup(files);
    ASSERT_OK_AND_ASSIGN(Cgroup group, Cgroup::Adopt(path, "", test.unified, kMemoryMax, 0));
    const Cgroup::Usage usage = group.ReadUsage();
    EXPECT_EQ(usage.memory_limit, test.memory_limit);
    EXPECT_EQ(usage.machine_oom, test.machine_oom);
    EXPECT_EQ(usage.peak_bytes, test.peak_bytes);
    Empty(path);
  }
}

}  // namespace
}  // namespace assay
