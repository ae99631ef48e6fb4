// Input contents: seeded generation, the verification battery, and exact transforms. Functions are
// thread-safe and keep nothing.
#ifndef ASSAY_KERNELS_INPUTS_INPUTS_H_
#define ASSAY_KERNELS_INPUTS_INPUTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/element_range.h"
#include "kernels/problem.h"

namespace assay {

// One way to fill all inputs of a workload.
struct InputCaseSpec {
  // "x1", "x3", "x0.01", "x-1", "mixed", "heavy_tail", "constant_rows", "one_hot", "sorted",
  // "cancelling", "exact_integers", "min", "max", "extremes", or that of a problem's case.
  std::string name;
  // Index into problem.input_cases, or -1 for the built-in battery.
  int problem_case = -1;
};

// The battery of a problem: x1 always; x3, x0.01, x-1 and the cases with structure (see
// structure.h) when some input is scalable, less those that the problem replaces or leaves out;
// min, max and "extremes" (min and max mixed) when some input has an integer distribution; then the
// problem's own cases. Fixed order.
std::vector<InputCaseSpec> InputBattery(const v1::Problem& problem);

// Whether a large workload is shown only a drawn few of these: the scales and structures that every
// problem has alike.
bool IsDrawnInputCase(const InputCaseSpec& input_case);

// Fills `out`, the bytes of input tensor `tensor_index` (index into workload.tensors), for one
// case. Deterministic in (seed, tensor index, case), the same bits on every machine. The seed
// passes through a hash, so contents tell nothing of other tensors, cases or seeds. F64 inputs use
// all 53 bits. INVALID_ARGUMENT for an unknown case, an output or a wrong size.
absl::Status GenerateInput(const v1::Problem& problem, const ResolvedWorkload& workload,
                           size_t tensor_index, const InputCaseSpec& input_case, uint64_t seed,
                           std::span<std::byte> out);

// The elements from `first_element` on that fill `out`, a whole number of elements: the same bits
// that GenerateInput writes there. Parts may be filled in any order and by several threads.
absl::Status GenerateInputPart(const v1::Problem& problem, const ResolvedWorkload& workload,
                               size_t tensor_index, const InputCaseSpec& input_case, uint64_t seed,
                               int64_t first_element, std::span<std::byte> out);

// A drawn transform of all tensors of a workload. Immutable after Draw, so it may be applied from
// several threads.
class DrawnTransform {
 public:
  // Draws every transform that the problem declares (they compose), from `seed`. With none
  // declared: identity. Permutations of dimensions with short elements that are long, or those of a
  // large tensor, are a rotation and a random order of blocks, so that applying one costs what a
  // copy costs; others are uniform.
  // INVALID_ARGUMENT when a transform names no tensor of the workload or dimensions of unequal
  // size.
  static absl::StatusOr<DrawnTransform> Draw(const v1::Problem& problem,
                                             const ResolvedWorkload& workload, uint64_t seed);

  // Writes `range`, all elements or a share of them, of the transformed input. `from` and `to` have
  // the tensor's bytes and do not overlap.
  void ApplyToInput(size_t tensor_index, std::span<const std::byte> from, std::span<std::byte> to,
                    ElementRange range) const;
  void ApplyToInput(size_t tensor_index, std::span<const std::byte> from,
                    std::span<std::byte> to) const {
    ApplyToInput(tensor_index, from, to, AllElements(tensors_[tensor_index]));
  }

  // The same for the reference's output (elements of reference_element_bytes).
  void ApplyToReference(size_t tensor_index, std::span<const std::byte> from,
                        std::span<std::byte> to) const;

  // ApplyToReference without the memory for it: hands `range` of the transformed output, all
  // elements or a share of them, to `take` part by part in order, `rows`: whole rows of the last
  // dimension. A part is gone when `take` returns.
  using TakePart = std::function<void(std::span<const std::byte> part)>;
  void StreamReference(size_t tensor_index, std::span<const std::byte> from, bool rows,
                       ElementRange range, const TakePart& take) const;

  // What elements of the tensor are multiplied by: a power of two, or its negative.
  double scale(size_t tensor_index) const { return actions_[tensor_index].scale; }

  bool is_identity() const;

 private:
  // Where the elements along one dimension come from. Identity when both lists are empty.
  struct DimensionMap {
    struct Run {
      int64_t from = 0;
      int64_t length = 0;
    };
    std::vector<int32_t> index;  // to[i] = from[index[i]]
    std::vector<Run> runs;       // copied one after the other
    bool identity() const { return index.empty() && runs.empty(); }
  };
  struct TensorAction {
    std::vector<DimensionMap> maps;  // parallel to the tensor's dims
    double scale = 1.0;
  };
  friend class TransformApplier;

  static DimensionMap DrawMap(int64_t size, bool element_wise, bool large, uint64_t seed);

  std::vector<TensorShape> tensors_;
  std::vector<TensorAction> actions_;  // parallel to tensors_
};

}  // namespace assay

#endif  // ASSAY_KERNELS_INPUTS_INPUTS_H_
