#include "worker/sandbox/required_walls.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"

namespace assay {

const std::vector<std::string>& AllWalls() {
  static const std::vector<std::string> all = {
      kWallBubblewrap, kWallUserNamespace, kWallNetwork,      kWallFiles,     kWallSeccomp,
      kWallUid,        kWallRlimits,       kWallCgroupMemory, kWallCgroupPids};
  return all;
}

bool IsWallRequiredByDefault(std::string_view wall, bool root) {
  if (wall == kWallUid) return root;
  return wall != kWallCgroupMemory && wall != kWallCgroupPids;
}

std::vector<std::string> DefaultRequiredWalls(bool root) {
  std::vector<std::string> required;
  for (const std::string& wall : AllWalls()) {
    if (IsWallRequiredByDefault(wall, root)) required.push_back(wall);
  }
  return required;
}

absl::Status CheckWalls(const std::vector<std::string>& required,
                        const std::vector<WallProbe>& probes) {
  std::vector<std::string> gaps;
  for (const std::string& wall : required) {
    const auto probe = std::find_if(probes.begin(), probes.end(), [&](const WallProbe& candidate) {
      return candidate.name == wall;
    });
    if (probe == probes.end()) {
      gaps.push_back(absl::StrCat(wall, " was not tried"));
    } else if (probe->state != WallState::kStanding) {
      gaps.push_back(
          absl::StrCat(wall, " is ", WallStateName(probe->state), " (", probe->note, ")"));
    }
  }
  if (gaps.empty()) return absl::OkStatus();
  return ErrorWithReason(
      absl::StatusCode::kFailedPrecondition, "WALL_MISSING",
      absl::StrCat("this worker lets no candidate in, since walls that it requires do not stand: ",
                   absl::StrJoin(gaps, "; "), "; 'assay doctor' on this machine tries all walls"));
}

}  // namespace assay
