#include "kernels/inputs/integer_range.h"

#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "assay/v1/problem.pb.h"
#include "kernels/text.h"

namespace assay {

IntegerRange ExactIntegers(DataType dtype) {
  switch (dtype) {
    case DataType::kI8:
      return {-128, 127};
    case DataType::kU8:
      return {0, 255};
    case DataType::kF16:
      return {-2048, 2048};
    case DataType::kBF16:
      return {-256, 256};
    case DataType::kF32:
      return {-(1 << 24), 1 << 24};
    default:
      return {std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
  }
}

absl::StatusOr<IntegerRange> ResolveIntegerRange(const v1::Distribution_UniformInt& distribution,
                                                 DataType dtype, const ValueMap& axes) {
  IntegerRange range = {distribution.low(), distribution.high()};
  std::string high = absl::StrCat(range.high);
  if (!distribution.high_expression().empty()) {
    const auto value = EvaluateExpression(distribution.high_expression(), axes);
    if (!value.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("distribution: high_expression: ", value.status().message()));
    }
    range.high = *value;
    high = absl::StrCat(Quoted(distribution.high_expression()), " = ", range.high);
  }
  const IntegerRange exact = ExactIntegers(dtype);
  if (range.low > range.high || range.low < exact.low || range.high > exact.high) {
    return absl::InvalidArgumentError(absl::StrCat("distribution: uniform_int from ", range.low,
                                                   " to ", high, " must be ascending and lie in [",
                                                   exact.low, ", ", exact.high, "] for this type"));
  }
  return range;
}

}  // namespace assay
