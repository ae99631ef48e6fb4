// From a conflict of two accesses to a fault, unless atomics and fences ordered them.
#ifndef ASSAY_EMULATOR_EXECUTE_RACE_REPORT_H_
#define ASSAY_EMULATOR_EXECUTE_RACE_REPORT_H_

#include <cstdint>

#include "emulator/execute/memory_access.h"
#include "emulator/memory/race.h"

namespace assay::emulator {

void ReportRace(Warp* warp, const Op& op, int lane, Space space, uint64_t address, uint32_t bytes,
                AccessKind kind, const RaceConflict& conflict);

// Effects of atomic and volatile accesses to the 4- or 8-byte location at `address` (shared: in the
// block's window) on what is ordered. A warp that has fenced, or whose operation says release,
// publishes what it knows.
void AcquireAt(Warp* warp, Space space, uint64_t address);
void ReleaseAt(Warp* warp, Space space, uint64_t address);

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_EXECUTE_RACE_REPORT_H_
