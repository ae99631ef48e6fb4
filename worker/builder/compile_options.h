// Which compiler options a candidate may add, and how libraries of baselines are linked. Pure,
// but for looking at what is installed.
#ifndef ASSAY_WORKER_BUILDER_COMPILE_OPTIONS_H_
#define ASSAY_WORKER_BUILDER_COMPILE_OPTIONS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace assay {

// The list is in README.md. Nothing on it names a file, changes arithmetic or loads code.
bool IsOptionAllowed(std::string_view option);

// Parameters become macros; anything but a C identifier is refused.
bool IsMacroNameAllowed(std::string_view name);

// Relative, without "..", of plain characters, and not in the builder's own folder.
bool IsSourcePathAllowed(std::string_view path);

// Flags that link `library`. INVALID_ARGUMENT when the name is not known; UNAVAILABLE with reason
// kLibraryNotInstalled when it is not there below `root`, which is "" but in tests.
absl::StatusOr<std::vector<std::string>> LibraryFlags(std::string_view library,
                                                      const std::string& root);

}  // namespace assay

#endif  // ASSAY_WORKER_BUILDER_COMPILE_OPTIONS_H_
