// Verification of one workload: the battery of input cases, every output compared.
//
// Blocking; not thread-safe.
#ifndef ASSAY_WORKER_VERIFY_VERIFIER_H_
#define ASSAY_WORKER_VERIFY_VERIFIER_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "worker/verify/loaded_work.h"

namespace assay {

struct VerifyOptions {
  // All input cases of the problem; otherwise x1 alone.
  bool battery = true;
  // Every input follows from it.
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

// Fills `record`. Stops at the first case that fails. The work keeps the base of the case that ran
// last.
absl::StatusOr<VerifyResult> VerifyWork(LoadedWork* work, const VerifyOptions& options,
                                        v1::Verification* record);

}  // namespace assay

#endif  // ASSAY_WORKER_VERIFY_VERIFIER_H_
