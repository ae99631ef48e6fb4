// What no candidate's device code may do, whatever device it is for: launch kernels itself, let a
// later launch begin before it has ended, or name what it does not define. Refused when it is
// built, so that no device sees it.
#ifndef ASSAY_WORKER_BUILDER_FORBIDDEN_DEVICE_CODE_H_
#define ASSAY_WORKER_BUILDER_FORBIDDEN_DEVICE_CODE_H_

#include <optional>
#include <string>
#include <string_view>

#include "worker/builder/builder.h"

namespace assay {

struct ForbiddenDeviceCode {
  std::string reason;  // DEVICE_LAUNCH_FORBIDDEN, DEPENDENT_LAUNCH_FORBIDDEN or UNDEFINED_SYMBOL
  BuildDiagnostic diagnostic;
};

// The first of it in the built PTX; nullopt: none. Pure; takes time linear in the text.
std::optional<ForbiddenDeviceCode> FindForbiddenDeviceCode(std::string_view ptx);

}  // namespace assay

#endif  // ASSAY_WORKER_BUILDER_FORBIDDEN_DEVICE_CODE_H_
