#include "base/file.h"
#include "base/test_matchers.h"
#include "client/cli/commands/doctor_checks.h"
#include "gmock/gmock.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

std::vector<WallProbe> SomeWalls() {
  return {{kWallBubblewrap, WallState::kStanding, ""},
          {kWallSeccomp, WallState::kMissing, "not refused: ptrace"},
          {kWallUid, WallState::kWeaker, "the worker is not root"},
          {kWallCgroupMemory, WallState::kWeaker, "RLIMIT_AS bounds each process"},
          {kWallCgroupPids, WallState::kStanding, ""}};
}

TEST(DoctorTest, EachWallHasItsStateAndWhatToDo) {
  const struct {
    const char* name;
    const char* state;
    bool required;
    bool required_of_root;
  } rows[] = {{"wall bubblewrap", "STANDING", true, true},
              {"wall seccomp", "MISSING", true, true},
              {"wall uid", "WEAKER", false, true},
              {"wall cgroup-memory", "WEAKER", false, false},
              {"wall cgroup-pids", "STANDING", false, false}};
  for (const bool root : {false, true}) {
    const std::vector<DoctorCheck> checks = WallChecks(absl::OkStatus(), SomeWalls(), root);
    ASSERT_EQ(checks.size(), std::size(rows));
    for (size_t i = 0; i < checks.size(); ++i) {
      SCOPED_TRACE(rows[i].name);
      EXPECT_EQ(checks[i].name, rows[i].name);
      EXPECT_EQ(checks[i].state, rows[i].state);
      EXPECT_EQ(checks[i].ok, checks[i].state == "STANDING");
      EXPECT_EQ(checks[i].required, root ? rows[i].required_of_root : rows[i].required);
      EXPECT_EQ(checks[i].detail.empty(), checks[i].ok);
    }
  }
}

TEST(DoctorTest, WallsThatCannotBeTriedAreOneCheck) {
  const std::vector<DoctorCheck> checks = WallChecks(
      absl::FailedPreconditionError("make /run/assay writable"), SomeWalls(), /*root=*/true);
  ASSERT_EQ(checks.size(), 1u);
  EXPECT_FALSE(checks[0].ok);
  EXPECT_TRUE(checks[0].required);
  EXPECT_EQ(checks[0].detail, "make /run/assay writable");
}

TEST(DoctorTest, OpenblasIsLookedForAndNotRequired) {
  TemporaryDirectory root = *TemporaryDirectory::Create("doctor-test");
  DoctorCheck check = OpenblasCheck(root.path());
  EXPECT_EQ(check.name, "openblas");
  EXPECT_FALSE(check.ok);
  EXPECT_FALSE(check.required);
  EXPECT_THAT(check.detail, HasSubstr("libopenblas-dev"));

  const std::string folder = "/usr/lib/x86_64-linux-gnu/openblas-pthread";
  ASSERT_OK(CreateDirectories(root.path() + folder));
  ASSERT_OK(WriteFileAtomically(root.path() + folder + "/libopenblas.so", "x"));
  check = OpenblasCheck(root.path());
  EXPECT_TRUE(check.ok);
  EXPECT_EQ(check.detail, folder);
}

}  // namespace
}  // namespace assay
