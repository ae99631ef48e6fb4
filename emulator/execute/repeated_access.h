// The fast way into memory: an access whose lanes lie to each other as they did when the operation
// ran last, so that what follows from that is known.
#ifndef ASSAY_EMULATOR_EXECUTE_REPEATED_ACCESS_H_
#define ASSAY_EMULATOR_EXECUTE_REPEATED_ACCESS_H_

#include <cstddef>
#include <cstdint>

#include "emulator/execute/lane_pattern.h"
#include "emulator/execute/lanes.h"
#include "emulator/memory/place_locks.h"
#include "emulator/ptx/module.h"

namespace assay::emulator {

struct RepeatedAccess {
  std::byte* start = nullptr;  // host address of the lowest lane's
  const LanePattern* pattern = nullptr;
  std::byte* at(int lane) const { return start + pattern->relative[lane]; }
};

// True when the lanes of `mask` may load, or store, `bytes` each at the addresses of `op` in
// global, const or shared memory, and every check was passed: counted, recorded and marked like
// PrepareGlobal and PrepareShared, which are to be asked otherwise. A store has no two lanes at one
// place then, and `hold` has its places until it is done.
bool PrepareRepeatedLoad(Warp* warp, const Op& op, uint32_t mask, Space space, uint32_t bytes,
                         RepeatedAccess* access);
bool PrepareRepeatedStore(Warp* warp, const Op& op, uint32_t mask, Space space, uint32_t bytes,
                          RepeatedAccess* access, PlaceHold* hold);

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_EXECUTE_REPEATED_ACCESS_H_
