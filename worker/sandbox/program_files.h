// Which files of the machine a guest needs to start: its loader, and the libraries that it and what
// it loads are linked with.
#ifndef ASSAY_WORKER_SANDBOX_PROGRAM_FILES_H_
#define ASSAY_WORKER_SANDBOX_PROGRAM_FILES_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace assay {

// Read-only binds, as in SandboxOptions, for a sandbox without /usr: what `binary` is linked with,
// the runtime of C and C++ that candidates are linked with, and each of `libraries` with what it is
// linked with in turn. One that is not installed is left out: what needs it was not built here.
// UNAVAILABLE when something that the binary needs is nowhere. Thread-safe; an answer is kept.
absl::StatusOr<std::vector<std::pair<std::string, std::string>>> ProgramFiles(
    const std::string& binary, const std::vector<std::string>& libraries);

}  // namespace assay

#endif  // ASSAY_WORKER_SANDBOX_PROGRAM_FILES_H_
