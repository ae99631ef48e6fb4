// Access to a warp's registers, for the handlers in ops/.
#ifndef ASSAY_EMULATOR_EXECUTE_LANES_H_
#define ASSAY_EMULATOR_EXECUTE_LANES_H_

#include <bit>
#include <cstddef>
#include <cstdint>

#include "emulator/program/program.h"

namespace assay::emulator {

class Block;

// Why the interpreter's inner loop was left after an operation.
enum class WarpEvent : uint8_t {
  kNone,
  kRegroup,  // the lanes took different ways, or some ended
  kParked,   // the running group waits; parked says for what
  kStopped,  // the launch ends: a fault, or somebody else's
};

// The running state of a warp. Handlers read and write registers, and go through execute/warp.h for
// anything else.
struct Warp {
  std::byte* registers = nullptr;
  uint32_t pc = 0;      // of the next operation
  uint32_t active = 0;  // lanes of the running group
  WarpEvent event = WarpEvent::kNone;
  uint32_t live = 0;   // lanes that have not exited
  uint32_t index = 0;  // in the block
  Block* block = nullptr;
  const uint32_t* lists = nullptr;  // Program::lists
  const Op* ops = nullptr;          // Program::ops
};

// The op.list_size values of `op` in Program::lists.
inline const uint32_t* OpList(const Warp* warp, const Op& op) { return warp->lists + op.list; }

// The kLanes values of the register at `offset`.
template <typename T>
inline T* Lanes(const Warp* warp, uint32_t offset) {
  return reinterpret_cast<T*>(warp->registers + offset);
}
inline uint32_t& PredicateLanes(const Warp* warp, uint32_t offset) {
  return *Lanes<uint32_t>(warp, offset);
}

// Calls f(lane) for every lane of `mask`. With all lanes the loop has a form that compilers turn
// into vector code; a destination may be one of the sources.
template <typename F>
inline void EachLane(uint32_t mask, F&& f) {
  if (mask == kAllLanes) {
#pragma GCC ivdep
    for (int lane = 0; lane < kLanes; ++lane) f(lane);
  } else {
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) f(std::countr_zero(rest));
  }
}

// Writes the bits of `value` for the lanes of `mask` to a predicate.
inline void SetPredicate(const Warp* warp, uint32_t offset, uint32_t mask, uint32_t value) {
  uint32_t& lanes = PredicateLanes(warp, offset);
  lanes = (lanes & ~mask) | (value & mask);
}

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_EXECUTE_LANES_H_
