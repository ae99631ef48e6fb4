// What an access of a warp costs by how its lanes lie to each other.
#ifndef ASSAY_EMULATOR_EXECUTE_ACCESS_PATTERN_H_
#define ASSAY_EMULATOR_EXECUTE_ACCESS_PATTERN_H_

#include <cstdint>

#include "emulator/execute/launch_state.h"
#include "emulator/execute/memory_access.h"

namespace assay::emulator {

// Whether the lanes of `mask` lie to each other as `pattern` says.
bool IsPattern(const LanePattern& pattern, uint32_t mask, const WarpAccess& access);

// Makes `pattern` what `access` is. Lanes that are 4 GiB apart or further make none.
void LearnPattern(uint32_t mask, uint32_t bytes, bool shared, const WarpAccess& access,
                  LanePattern* pattern);

// Different 32-byte sectors that the runs touch from address `start` on.
uint64_t CountSectors(LanePattern* pattern, uint64_t start);

// Different 32-byte sectors that the lanes touch.
uint64_t CountSectors(uint32_t mask, uint32_t bytes, const WarpAccess& access);

// Passes beyond the first that the 32 banks of 4 bytes need; 8- and 16-byte accesses go by half and
// quarter warps.
uint64_t CountBankConflicts(uint32_t distinct, uint32_t bytes, const WarpAccess& access);

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_EXECUTE_ACCESS_PATTERN_H_
