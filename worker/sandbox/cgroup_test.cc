// Single groups in a plain folder: what is written where, and what usage is read as. What a kernel
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

class CgroupTest : public ::testing::Test {
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

TEST_F(CgroupTest, UnifiedLimitsAreWrittenIntoOneGroup) {
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

TEST_F(CgroupTest, LegacyLimitsAreWrittenToo) {
  const std::string path = MakeGroup(
      {{"cgroup.procs", ""}, {"memory.limit_in_bytes", ""}, {"memory.memsw.limit_in_bytes", ""}});
  ASSERT_OK_AND_ASSIGN(Cgroup group, Cgroup::Adopt(path, "", false, kMemoryMax, 17));
  EXPECT_FALSE(group.has_pids());
  EXPECT_EQ(Read("/group/memory.limit_in_bytes"), absl::StrCat(kMemoryMax));
  EXPECT_EQ(Read("/group/memory.memsw.limit_in_bytes"), absl::StrCat(kMemoryMax));
  Empty(path);
}

// Where v2 hands only one of the controllers down.
TEST_F(CgroupTest, AGroupForProcessesAloneLimitsThemAlone) {
  const std::string path = MakeGroup({{"cgroup.procs", ""}, {"pids.max", ""}});
  ASSERT_OK_AND_ASSIGN(Cgroup group, Cgroup::Adopt("", path, true, kMemoryMax, 17));
  EXPECT_FALSE(group.has_memory());
  EXPECT_TRUE(group.has_pids());
  EXPECT_EQ(group.entry_descriptors().size(), 1u);
  EXPECT_EQ(Read("/group/pids.max"), "17");
  Empty(path);
}

TEST_F(CgroupTest, RefusedForksAreRead) {
  for (const auto& [events, refused] :
       {std::pair{"max 0\n", false}, std::pair{"max 3\n", true}, std::pair{"", false}}) {
    const std::string path =
        MakeGroup({{"cgroup.procs", ""}, {"pids.max", ""}, {"pids.events", events}});
    ASSERT_OK_AND_ASSIGN(Cgroup group, Cgroup::Adopt("", path, true, 0, 17));
    EXPECT_EQ(group.ReadUsage().processes_limit, refused) << events;
    Empty(path);
  }
}

// All at once where the kernel can; it has no such file in v1.
TEST_F(CgroupTest, AGroupIsKilledAsAWhole) {
  const std::string path = MakeGroup({{"cgroup.procs", ""}, {"cgroup.kill", ""}});
  KillCgroup(path);
  EXPECT_EQ(Read("/group/cgroup.kill"), "1");
}

TEST_F(CgroupTest, AGroupThatCannotBeEnteredIsAnErrorAndGoes) {
  const std::string path = directory_.path() + "/group";
  ASSERT_OK(CreateDirectories(path));
  EXPECT_THAT(Cgroup::Adopt(path, path, true, kMemoryMax, 17).status().message(),
              HasSubstr("/group/cgroup.procs"));
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(CgroupTest, WhoWasOutOfMemoryIsReadFromTheGroup) {
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
