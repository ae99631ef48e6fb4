// What an access of a warp costs by how its lanes lie to each other.
#ifndef ASSAY_EMULATOR_EXECUTE_ACCESS_PATTERN_H_
#define ASSAY_EMULATOR_EXECUTE_ACCESS_PATTERN_H_

#include <cstdint>

#include "emulator/execute/launch_state.h"
#include "emulator/execute/memory_access.h"

namespace assay::emulator {

// Of the lanes of `mask` that touch the same place one each, and those of them that are not alone.
void FindDistinct(uint32_t mask, uint32_t bytes, const WarpAccess& access, LanePattern* pattern);

// Different 32-byte sectors that the lanes touch.
uint64_t CountSectors(uint32_t mask, uint32_t bytes, const WarpAccess& access);

// Passes beyond the first that the 32 banks of 4 bytes need; 8- and 16-byte accesses go by half and
// quarter warps.
uint64_t CountBankConflicts(uint32_t distinct, uint32_t bytes, const WarpAccess& access);

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_EXECUTE_ACCESS_PATTERN_H_
