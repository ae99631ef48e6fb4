// What a barrier with a reduction does when it opens.
#ifndef ASSAY_EMULATOR_EXECUTE_BARRIER_H_
#define ASSAY_EMULATOR_EXECUTE_BARRIER_H_

#include <cstdint>

#include "emulator/execute/lanes.h"

namespace assay::emulator {

// Op::extra of a barrier operation.
enum class BarrierReduction : uint32_t { kNone, kCount, kAnd, kOr };

// Writes the result of `op` for the lanes of `mask`: of `arrived` threads `set_count` brought a
// true predicate.
void FinishBarrierReduction(Warp* warp, const Op& op, uint32_t mask, uint32_t set_count,
                            uint32_t arrived);

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_EXECUTE_BARRIER_H_
