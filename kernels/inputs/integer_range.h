// The values that a uniform_int distribution draws. Internal to kernels; pure.
#ifndef ASSAY_KERNELS_INPUTS_INTEGER_RANGE_H_
#define ASSAY_KERNELS_INPUTS_INTEGER_RANGE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/expression/expression.h"
#include "kernels/problem.h"

namespace assay {

namespace v1 {
class Distribution_UniformInt;
}

struct IntegerRange {
  int64_t low = 0;
  int64_t high = 0;  // inclusive
};

// Values that `dtype` holds exactly, within those of int32.
IntegerRange ExactIntegers(DataType dtype);

// The ends for the axes of one workload; both fit `dtype`. INVALID_ARGUMENT when they do not or
// are not ascending, and when the expression of the high end cannot be evaluated.
absl::StatusOr<IntegerRange> ResolveIntegerRange(const v1::Distribution_UniformInt& distribution,
                                                 DataType dtype, const ValueMap& axes);

}  // namespace assay

#endif  // ASSAY_KERNELS_INPUTS_INTEGER_RANGE_H_
