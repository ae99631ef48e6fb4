// What assay doctor says of the machine's sandbox and libraries. Looks, and changes nothing.
#ifndef ASSAY_CLIENT_CLI_COMMANDS_DOCTOR_CHECKS_H_
#define ASSAY_CLIENT_CLI_COMMANDS_DOCTOR_CHECKS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "worker/sandbox/sandbox.h"

namespace assay {

struct DoctorCheck {
  std::string name;
  bool ok = false;
  bool required = false;  // without it a worker here judges nothing, unless told otherwise
  std::string detail;
  std::string state{};  // of a wall: STANDING, WEAKER or MISSING
};

// One for each wall; only one that is STANDING is ok. `root`: whether workers here run as root, who
// can give each sandbox a user of its own. A single failed one when `slots` is an error: without a
// share of the slots (ProcessSlots) no wall can be tried.
std::vector<DoctorCheck> WallChecks(const absl::Status& slots, const std::vector<WallProbe>& walls,
                                    bool root);

// `root` as for FindOpenblas.
DoctorCheck OpenblasCheck(const std::string& root);

}  // namespace assay

#endif  // ASSAY_CLIENT_CLI_COMMANDS_DOCTOR_CHECKS_H_
