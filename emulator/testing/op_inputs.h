// Inputs for tests of operations: the values where things go wrong, crossed, and random ones.
#ifndef ASSAY_EMULATOR_TESTING_OP_INPUTS_H_
#define ASSAY_EMULATOR_TESTING_OP_INPUTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/testing/op_fixture.h"

namespace assay::emulator {

enum class ValueKind {
  kBits8,
  kBits16,
  kBits32,
  kBits64,
  kF16,
  kBF16,
  kF32,
  kF64,
  kF16x2,
  kBF16x2,
  kShift,      // small amounts, and some too large
  kPredicate,  // 0 and 1
};

// Zeros, least and largest values, neighbours of powers of two; of floating-point kinds also
// subnormals, infinities, NaN with payloads, and halves and neighbours of what integers hold.
std::vector<uint64_t> SpecialValues(ValueKind kind);

// Inputs of the given kinds: every combination of special values, or `crossed_max` of them by
// chance when there are more; and `random` ones, of which many are near each other. `seed` is
// printed with the first failure of a test that says SCOPED_TRACE.
std::vector<OpInputs> MakeInputs(const std::vector<ValueKind>& kinds, size_t crossed_max,
                                 size_t random, uint64_t seed);

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_TESTING_OP_INPUTS_H_
