// Which walls an operator requires before a candidate is let in.
#ifndef ASSAY_WORKER_SANDBOX_REQUIRED_WALLS_H_
#define ASSAY_WORKER_SANDBOX_REQUIRED_WALLS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "worker/sandbox/sandbox.h"

namespace assay {

// Every wall, in the order of ProbeWalls.
const std::vector<std::string>& AllWalls();

// Those that a worker requires when nobody says otherwise: all but the control groups, which not
// every machine gives, and without root all but the user too, which only root can change.
bool IsWallRequiredByDefault(std::string_view wall, bool root);
std::vector<std::string> DefaultRequiredWalls(bool root);

// FAILED_PRECONDITION with the reason WALL_MISSING when one of `required` is not STANDING in
// `probes`, with all such walls and what to do for each. A WEAKER wall is not standing.
absl::Status CheckWalls(const std::vector<std::string>& required,
                        const std::vector<WallProbe>& probes);

}  // namespace assay

#endif  // ASSAY_WORKER_SANDBOX_REQUIRED_WALLS_H_
