#include "client/cli/commands/doctor_checks.h"

#include <optional>

#include "worker/sandbox/openblas.h"

namespace assay {

std::vector<DoctorCheck> WallChecks(const absl::Status& slots, const Walls& walls) {
  if (!slots.ok()) return {{"sandbox user ids", false, true, std::string(slots.message())}};
  std::vector<DoctorCheck> checks;
  for (const std::string& wall : walls.standing) {
    checks.push_back({"wall " + wall, true, IsWallRequired(wall), ""});
  }
  for (size_t i = 0; i < walls.missing.size(); ++i) {
    checks.push_back({"wall " + walls.missing[i], false, IsWallRequired(walls.missing[i]),
                      i < walls.notes.size() ? walls.notes[i] : ""});
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
