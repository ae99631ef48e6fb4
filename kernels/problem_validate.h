// The parts of ValidateProblem. Internal to kernels; every function gives INVALID_ARGUMENT with the
// place.
#ifndef ASSAY_KERNELS_PROBLEM_VALIDATE_H_
#define ASSAY_KERNELS_PROBLEM_VALIDATE_H_

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "kernels/problem.h"

namespace assay::validate {

// `expression` parses and uses nothing but `names`.
absl::Status CheckExpression(std::string_view expression, const std::set<std::string>& names);

// Tensors with their shapes, distributions and tolerances; input cases.
absl::Status CheckTensors(const v1::Problem& problem, const std::set<std::string>& axes);
absl::Status CheckInputCases(const v1::Problem& problem, const std::set<std::string>& axes);

// Contracts have names of their own, and tolerances that the outputs may have.
absl::Status CheckContracts(const v1::Problem& problem);

// Transforms name known tensors and dimensions, are exact for their types, and do not overlap.
absl::Status CheckTransforms(const v1::Problem& problem);

// The dimensions of every permutation have one size in `workload`.
absl::Status CheckTransformSizes(const v1::Problem& problem, const ResolvedWorkload& workload);

}  // namespace assay::validate

#endif  // ASSAY_KERNELS_PROBLEM_VALIDATE_H_
