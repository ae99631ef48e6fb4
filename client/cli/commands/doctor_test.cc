#include <map>

#include "base/file.h"
#include "base/test_matchers.h"
#include "client/cli/commands/doctor_checks.h"
#include "gmock/gmock.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

TEST(DoctorTest, WallsWithoutWhichNothingRunsAreRequired) {
  Walls walls;
  walls.standing = {kWallBubblewrap, kWallUserNamespace, kWallNetwork, kWallFiles, kWallRlimits};
  walls.missing = {kWallSeccomp, kWallUid, kWallCgroupMemory, kWallCgroupPids};
  walls.notes = {"seccomp: why", "uid: why", "cgroup-memory: why", "cgroup-pids: why"};
  const std::map<std::string, bool> required = {
      {"wall bubblewrap", true}, {"wall userns", true},         {"wall network", true},
      {"wall files", true},      {"wall seccomp", true},        {"wall rlimits", true},
      {"wall uid", false},       {"wall cgroup-memory", false}, {"wall cgroup-pids", false},
  };
  const std::vector<DoctorCheck> checks = WallChecks(absl::OkStatus(), walls);
  ASSERT_EQ(checks.size(), required.size());
  for (const DoctorCheck& check : checks) {
    SCOPED_TRACE(check.name);
    ASSERT_EQ(required.count(check.name), 1u);
    EXPECT_EQ(check.required, required.at(check.name));
    const bool missing = check.name == "wall seccomp" || !check.required;
    EXPECT_EQ(check.ok, !missing);
    EXPECT_EQ(check.detail.empty(), check.ok);
  }
}

TEST(DoctorTest, WallsThatCannotBeTriedAreOneCheck) {
  Walls walls;
  walls.missing = {kWallBubblewrap, kWallUserNamespace};
  walls.notes = {"bubblewrap: not tried", "userns: not tried"};
  const std::vector<DoctorCheck> checks =
      WallChecks(absl::FailedPreconditionError("make /run/assay writable"), walls);
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
