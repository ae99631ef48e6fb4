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
  bool required = false;  // without it this machine judges nothing
  std::string detail;
};

// One for each wall, standing ones first. A single failed one when `slots` is an error: without a
// share of the slots (ProcessSlots) no wall can be tried.
std::vector<DoctorCheck> WallChecks(const absl::Status& slots, const Walls& walls);

// `root` as for FindOpenblas.
DoctorCheck OpenblasCheck(const std::string& root);

}  // namespace assay

#endif  // ASSAY_CLIENT_CLI_COMMANDS_DOCTOR_CHECKS_H_
