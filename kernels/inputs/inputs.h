// Input contents: seeded generation, the verification battery, and exact transforms.
#ifndef ASSAY_KERNELS_INPUTS_INPUTS_H_
#define ASSAY_KERNELS_INPUTS_INPUTS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/problem.h"

namespace assay {

// One way to fill all inputs of a workload.
struct InputCaseSpec {
  std::string
      name;  // "x1", "x3", "x0.01", "x-1", "min", "max", or the name of a problem's own case
  // Index into problem.input_cases, or -1 for the built-in battery.
  int problem_case = -1;
};

// The battery of a problem: x1 always; x3, x0.01, x-1 when some input is scalable; min, max and
// "extremes" (min and max mixed) when some input has an integer distribution; then the problem's
// own cases. Fixed order.
std::vector<InputCaseSpec> InputBattery(const v1::Problem& problem);

// Fills `out`, the bytes of input tensor `tensor_index` (index into workload.tensors), for one
// case. Deterministic in (seed, tensor index, case); element i depends on nothing but those and i,
// so a long tensor may be filled in parts. Normal numbers by an inverse or polynomial method that
// is exact enough for tests and fast (>= 200 M elements/s is the goal, one core).
absl::Status GenerateInput(const v1::Problem& problem, const ResolvedWorkload& workload,
                           size_t tensor_index, const InputCaseSpec& input_case, uint64_t seed,
                           std::span<std::byte> out);

// A drawn transform of all tensors of a workload.
class DrawnTransform {
 public:
  // Draws every transform that the problem declares (they compose), from `seed`. With none
  // declared: identity.
  static absl::StatusOr<DrawnTransform> Draw(const v1::Problem& problem,
                                             const ResolvedWorkload& workload, uint64_t seed);

  // Writes the transformed input. `from` and `to` have the tensor's bytes and do not overlap.
  void ApplyToInput(size_t tensor_index, std::span<const std::byte> from,
                    std::span<std::byte> to) const;

  // The same for the reference's output (elements of reference_element_bytes).
  void ApplyToReference(size_t tensor_index, std::span<const std::byte> from,
                        std::span<std::byte> to) const;

  bool is_identity() const;

 private:
  struct TensorAction {
    // permutation[d] is empty when dimension d stays: to[.., i, ..] = from[.., permutation[d][i],
    // ..].
    std::vector<std::vector<int32_t>> permutation;
    double scale = 1.0;
  };
  std::vector<TensorShape> tensors_;
  std::vector<TensorAction> actions_;  // parallel to tensors_
};

}  // namespace assay

#endif  // ASSAY_KERNELS_INPUTS_INPUTS_H_
