#include "worker/sandbox/required_walls.h"

#include "base/status.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"

namespace assay {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<WallProbe> AllIn(WallState state) {
  std::vector<WallProbe> probes;
  for (const std::string& wall : AllWalls()) probes.push_back({wall, state, "why " + wall});
  return probes;
}

TEST(RequiredWallsTest, DefaultsAreWhatEveryMachineOfItsKindGives) {
  const std::vector<std::string> root = DefaultRequiredWalls(true);
  const std::vector<std::string> other = DefaultRequiredWalls(false);
  for (const char* wall : {kWallBubblewrap, kWallUserNamespace, kWallNetwork, kWallFiles,
                           kWallSeccomp, kWallRlimits}) {
    EXPECT_THAT(root, Contains(wall));
    EXPECT_THAT(other, Contains(wall));
  }
  EXPECT_THAT(root, Contains(kWallUid));
  EXPECT_THAT(other, Not(Contains(kWallUid)));
  for (const char* wall : {kWallCgroupMemory, kWallCgroupPids}) {
    EXPECT_THAT(root, Not(Contains(wall)));
    EXPECT_THAT(other, Not(Contains(wall)));
  }
}

TEST(RequiredWallsTest, EachWallThatDoesNotStandRefusesAndIsNamed) {
  EXPECT_OK(CheckWalls(AllWalls(), AllIn(WallState::kStanding)));
  EXPECT_OK(CheckWalls({}, AllIn(WallState::kMissing)));
  for (const std::string& wall : AllWalls()) {
    for (const WallState state : {WallState::kWeaker, WallState::kMissing}) {
      std::vector<WallProbe> probes = AllIn(WallState::kStanding);
      for (WallProbe& probe : probes) {
        if (probe.name == wall) probe.state = state;
      }
      const absl::Status status = CheckWalls({wall}, probes);
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition,
                                   AllOf(HasSubstr(wall), HasSubstr(WallStateName(state)),
                                         HasSubstr("why " + wall))));
      EXPECT_EQ(GetReason(status), "WALL_MISSING");
      // One that nobody requires is nobody's loss.
      for (const std::string& another : AllWalls()) {
        if (another == wall) continue;
        EXPECT_OK(CheckWalls({another}, probes));
      }
    }
  }
}

TEST(RequiredWallsTest, AWallThatWasNotTriedDoesNotStand) {
  EXPECT_THAT(CheckWalls({kWallSeccomp}, {}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("seccomp was not tried")));
}

}  // namespace
}  // namespace assay
