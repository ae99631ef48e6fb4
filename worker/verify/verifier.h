// Verification of one workload: the battery of input cases, every output compared. On an emulated
// device the first case is called in several orders, once with approximate functions that err, and
// with each launch left out; then calls in a row show what variables carry from one to the next.
//
// Blocking; not thread-safe.
#ifndef ASSAY_WORKER_VERIFY_VERIFIER_H_
#define ASSAY_WORKER_VERIFY_VERIFIER_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "worker/verify/loaded_work.h"

namespace assay {

namespace internal::v1 {
class RunnerWorkloadReport;
}

struct VerifyOptions {
  // The battery; otherwise x1 alone. A small workload is shown all of it. A large one is shown x1,
  // and of the scales and structures three that are drawn from the nonce, or one where it is only
  // verified; a measured one all others too.
  bool battery = true;
  // Every input and every order follows from it.
  uint64_t nonce = 0;
};

struct VerifyResult {
  Step step = Step::kDone;
  std::string input_case;  // the case at the end, when a guest ended
  bool right = true;
  std::string reason;  // when not right: MISMATCH, NAN_OUTPUT, OUTPUT_NOT_WRITTEN
  // Right at one call and wrong, or (where bits must match) different, at another on the same
  // input.
  bool nondeterministic = false;
};

// Fills the report's verification and, on an emulated device, what was observed and what the
// outputs depend on. Stops at the first case that fails. The work keeps the base of the case that
// ran last.
absl::StatusOr<VerifyResult> VerifyWork(LoadedWork* work, const VerifyOptions& options,
                                        internal::v1::RunnerWorkloadReport* report);

}  // namespace assay

#endif  // ASSAY_WORKER_VERIFY_VERIFIER_H_
