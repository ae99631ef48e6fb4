// The only place where floating point results are compared.
//
// SCALED: with scale = root mean square of the reference (per row of the last dimension, or over
// the output; 0 counts as the smallest positive normal of the output's type), an element is wrong
// when |got - want| > element_max * (|want| + scale); the output is wrong when an element is, or
// when ||got - want||_2 > relative_l2_max * ||want||_2 (for a zero reference: when any got is not
// 0). NaN equals only NaN; an infinity equals only itself. A finite reference beyond the output's
// range counts as the infinity it rounds to; infinities and NaN stay out of scale and norms.
// BITWISE: every bit equal; errors are then plain |got - want|. Functions are thread-safe.
#ifndef ASSAY_KERNELS_TOLERANCE_TOLERANCE_H_
#define ASSAY_KERNELS_TOLERANCE_TOLERANCE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "kernels/element_range.h"
#include "kernels/problem.h"

namespace assay {

namespace v1 {
class TolerancePolicy;
}

struct OutputComparison {
  bool passed = true;
  double relative_l2 = 0;
  double element_error_max = 0;  // in units of the policy, see above
  int64_t wrong_count = 0;
  // First wrong element in row-major order; -1 when none is (an output can fail by its L2 error
  // alone).
  int64_t first_wrong = -1;
  double first_wrong_got = 0;
  double first_wrong_want = 0;
  double first_wrong_error = 0;
};

// `got` has the tensor's bytes, `want` the reference's (double, or the same dtype for BITWISE).
OutputComparison CompareOutput(const v1::TolerancePolicy& policy, const TensorShape& tensor,
                               std::span<const std::byte> got, std::span<const std::byte> want);

// What SCALED needs to know of all expected elements of an output ahead.
struct OutputScale {
  double scale = 0;
  double squares = 0;
  double largest = 0;
  // All are finite, inside the type's range, and their squares add up in doubles.
  bool ordinary = false;

  // The scale of the same elements, each multiplied by `factor`, a power of two or its negative.
  OutputScale Times(double factor, DataType dtype) const;
};
OutputScale ScaleOfOutput(const TensorShape& tensor, std::span<const std::byte> want);

// Compares an output with expected elements that come part by part and are kept nowhere: what
// CompareOutput says where the output is right and all is ordinary. Not thread-safe.
class StreamedComparison {
 public:
  // `policy`, `tensor` and `got` outlive it. `whole`: of all expected elements; not read where the
  // scale is per row or the policy BITWISE. `first`: the element that comes first.
  StreamedComparison(const v1::TolerancePolicy& policy, const TensorShape& tensor,
                     std::span<const std::byte> got, const OutputScale& whole, int64_t first = 0);

  // The expected elements that follow, whole rows where the scale is per row.
  void Take(std::span<const std::byte> want);

  // Takes over what another comparison found of the elements that follow.
  void Add(const StreamedComparison& next);

  // After the last part. nullopt: something is wrong, missing, infinite or NaN, and only
  // CompareOutput can tell what.
  std::optional<OutputComparison> Finish() const;

 private:
  void TakeScaled(std::span<const double> want);

  const v1::TolerancePolicy& policy_;
  const TensorShape& tensor_;
  const std::span<const std::byte> got_;
  const OutputScale whole_;
  const size_t first_;
  size_t at_;  // the element that comes next
  bool clean_ = true;
  OutputComparison out_;
  double error_squares_ = 0;
  double want_squares_ = 0;
};

// Fills an output, or `range` of its elements, with a quiet NaN whose payload no arithmetic yields,
// or with 0xa5 bytes in integers.
void PoisonOutput(const TensorShape& tensor, std::span<std::byte> bytes);
void PoisonOutput(const TensorShape& tensor, std::span<std::byte> bytes, ElementRange range);

// Elements that still hold exactly the pattern of PoisonOutput. For floating outputs these were not
// written. In integer outputs a right value may equal the pattern, so there the count is an upper
// bound: it explains an output that compares wrong, and proves nothing about one that is right.
int64_t CountPoisoned(const TensorShape& tensor, std::span<const std::byte> bytes);

// Row-major index of element `flat`.
std::vector<int64_t> UnflattenIndex(const TensorShape& tensor, int64_t flat);

}  // namespace assay

#endif  // ASSAY_KERNELS_TOLERANCE_TOLERANCE_H_
