// Arithmetic contracts: what a candidate may do with numbers, and which tolerance follows from it.
// Thread-safe; nothing is kept.
#ifndef ASSAY_KERNELS_CONTRACT_H_
#define ASSAY_KERNELS_CONTRACT_H_

#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace assay {

namespace v1 {
class ArithmeticContract;
class Problem;
}  // namespace v1

// The contract `name`, or for an empty name the first; it belongs to `problem`. Null where the name
// is empty and the problem has none. INVALID_ARGUMENT with reason CONTRACT_UNKNOWN lists the known
// ones.
absl::StatusOr<const v1::ArithmeticContract*> FindContract(const v1::Problem& problem,
                                                           std::string_view name);

// The problem as this contract has it, for whoever judges: the contract is its only one, its
// tolerances are those of the tensors, and where it lets operands be rounded, operations of f32
// count as those of f16, which limits the time from below. Errors are those of FindContract.
absl::StatusOr<v1::Problem> ProblemUnderContract(const v1::Problem& problem, std::string_view name);

}  // namespace assay

#endif  // ASSAY_KERNELS_CONTRACT_H_
