#include "client/cli/commands/doctor_checks.h"

#include <optional>

#include "worker/sandbox/openblas.h"
#include "worker/sandbox/required_walls.h"

namespace assay {

std::vector<DoctorCheck> WallChecks(const absl::Status& slots, const std::vector<WallProbe>& walls,
                                    bool root) {
  if (!slots.ok()) return {{"sandbox user ids", false, true, std::string(slots.message())}};
  std::vector<DoctorCheck> checks;
  for (const WallProbe& wall : walls) {
    checks.push_back({"wall " + wall.name, wall.state == WallState::kStanding,
                      IsWallRequiredByDefault(wall.name, root), wall.note,
                      WallStateName(wall.state)});
  }
  return checks;
}

DoctorCheck OpenblasCheck(const std::string& root) {
  const std::optional<OpenblasFolders> folders = FindOpenblas(root);
  return {"openblas", folders.has_value(), false,
          folders.has_value() ? folders->library
                              : "missing: results come without the baselines that use it; install "
                                "the package libopenblas-dev"};
}

}  // namespace assay
