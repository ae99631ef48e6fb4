// What follows a build of device code: whether a candidate may do what it does, and by ptxas in the
// build sandbox what it takes of a device, and whether it can be assembled at all.
#ifndef ASSAY_WORKER_BUILDER_PTXAS_H_
#define ASSAY_WORKER_BUILDER_PTXAS_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "worker/builder/builder.h"
#include "worker/builder/cached_build.h"

namespace assay {

struct PtxasOptions {
  std::string program;  // path here; empty: it is not asked
  std::string target;   // "sm_80", which the PTX's own target replaces where that is higher
  CompileLimits compile_limits;
  int slot = 0;
};

// "compute_90a" to "sm_90a".
std::string RealArchitecture(std::string_view virtual_architecture);

// Thread-safe; blocks. PTX with forbidden device code is refused for that, whatever is installed;
// see forbidden_device_code.h. PTX that ptxas does not assemble for a fault of its own (an unknown
// instruction, an undefined function) is refused. When ptxas is missing, older than the PTX, or
// meets a limit, there is no report, and the PTX stands.
absl::StatusOr<Inspection> InspectPtx(const PtxasOptions& options, std::string_view ptx);

}  // namespace assay

#endif  // ASSAY_WORKER_BUILDER_PTXAS_H_
