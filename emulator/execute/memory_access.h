// Accesses of a whole warp to memory: every check at once where all lanes pass it, lane by lane
// where one does not.
#ifndef ASSAY_EMULATOR_EXECUTE_MEMORY_ACCESS_H_
#define ASSAY_EMULATOR_EXECUTE_MEMORY_ACCESS_H_

#include <cstddef>
#include <cstdint>

#include "emulator/execute/lanes.h"
#include "emulator/execute/launch_state.h"
#include "emulator/memory/place_locks.h"
#include "emulator/ptx/module.h"

namespace assay::emulator {

enum class AccessKind : uint8_t {
  kLoad,
  kStore,
  kAtomic,         // reads and writes; does not race with other such
  kVolatileLoad,   // ld.volatile, ld.relaxed, ld.acquire: races with nothing
  kVolatileStore,  // likewise st; records an atomic write
};
inline bool Writes(AccessKind kind) {
  return kind == AccessKind::kStore || kind == AccessKind::kAtomic ||
         kind == AccessKind::kVolatileStore;
}
inline bool Reads(AccessKind kind) {
  return kind == AccessKind::kLoad || kind == AccessKind::kAtomic ||
         kind == AccessKind::kVolatileLoad;
}

// An access that passed every check.
struct WarpAccess {
  Pattern pattern = Pattern::kScattered;
  std::byte* base = nullptr;  // host address of offset 0
  // Of a store, set before: what lane i writes, at values + i * bytes. Writing what is there
  // already is no race.
  const std::byte* values = nullptr;
  alignas(64) uint64_t offset[kLanes];  // of the lanes of the mask; the others repeat one of them
  PlaceHold hold;                       // of a store to global memory, until it is done
  std::byte* at(int lane) const { return base + offset[lane]; }
};

// Op::extra of memory operations, the low bits.
inline constexpr uint32_t kNarrowAddress = 1;  // the base register has 4 bytes

// Addresses of all lanes: base register Op::a (kNoRegister: none) plus Op::data. Shared addresses
// wrap at 2^32.
void ComputeAddresses(const Warp* warp, const Op& op, uint64_t* addresses);

// The live allocation that holds `address`, as the operation met it last or as it is found now;
// nullptr: none does.
const AllocationSlot* FindSlot(Warp* warp, const Op& op, uint64_t address);

// True when the lanes of `mask` may all access `bytes` (1 to 16) at their addresses, which are
// global or shared ones. Counts, marks written bytes and looks for races. False: LoadLane and
// StoreLane find out, and report, what is wrong.
bool PrepareGlobal(Warp* warp, const Op& op, uint32_t mask, const uint64_t* addresses,
                   uint32_t bytes, AccessKind kind, WarpAccess* access);
bool PrepareShared(Warp* warp, const Op& op, uint32_t mask, const uint64_t* addresses,
                   uint32_t bytes, AccessKind kind, WarpAccess* access);

// Keeps the launch's other host threads from the places in global memory that lanes of `mask` are
// about to write, until `hold` goes.
void HoldPlaces(Warp* warp, Space space, uint32_t mask, const uint64_t* addresses, PlaceHold* hold);

// Which space a generic address is in, and the address there. Global when it is in no window.
Space SplitGeneric(uint64_t* address);

// One lane, with a report of whatever is wrong: nullptr then. Marks and records as the whole-warp
// forms do. `value` is what a store writes. Whoever writes asks HoldPlaces first.
std::byte* PrepareLane(Warp* warp, const Op& op, int lane, Space space, uint64_t address,
                       uint32_t bytes, AccessKind kind, const void* value);

// Looks for races of a write to shared memory that takes place later.
void RecordSharedWrite(Warp* warp, const Op& op, int lane, uint64_t address, uint32_t bytes,
                       const void* value);

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_EXECUTE_MEMORY_ACCESS_H_
