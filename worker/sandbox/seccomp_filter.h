// Programs for seccomp, as bubblewrap takes them.
#ifndef ASSAY_WORKER_SANDBOX_SECCOMP_FILTER_H_
#define ASSAY_WORKER_SANDBOX_SECCOMP_FILTER_H_

#include "absl/status/statusor.h"
#include "base/file.h"
#include "worker/sandbox/sandbox.h"

namespace assay {

// A memory file that holds the program, at its start. Thread-safe. Not for kNone.
absl::StatusOr<UniqueFd> OpenSeccompProgram(SyscallFilter filter);

}  // namespace assay

#endif  // ASSAY_WORKER_SANDBOX_SECCOMP_FILTER_H_
