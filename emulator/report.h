// What a launch found and counted.
#ifndef ASSAY_EMULATOR_REPORT_H_
#define ASSAY_EMULATOR_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/ptx/module.h"

namespace assay::emulator {

enum class FaultKind : uint8_t {
  kNone,
  kOutOfBounds,  // of every allocation, or of shared, local, const and param memory
  kMisaligned,
  kUseAfterFree,
  kUninitializedRead,
  kInputWritten,
  kSharedRace,
  kGlobalRace,
  kDivergentBarrier,   // an aligned barrier reached by part of a warp
  kMismatchedBarrier,  // threads of a block meet at different barriers, or some ended before
  kDeadlock,           // every thread that is left waits
  kAbsentLane,         // a warp operation names or reads a lane that is not there
  kMissingAsyncWait,   // the destination of cp.async read before it was waited for
  kInstructionBudget,
  kTrap,
  kAssert,
  kPrintfFlood,
  kUnsupported,  // an operand value that nobody emulates
  kTimeBudget,   // of the host's CPU time
};
// "OUT_OF_BOUNDS" and so on: stable.
const char* FaultName(FaultKind kind);

struct Dim3 {
  uint32_t x = 1;
  uint32_t y = 1;
  uint32_t z = 1;
  uint64_t Count() const { return uint64_t{x} * y * z; }
};

// One fault; later ones of the same kind at the same operation only count.
struct Fault {
  FaultKind kind = FaultKind::kNone;
  std::string kernel;
  std::string opcode;
  SourceLocation location;
  std::string file;  // of location; empty: unknown
  Dim3 block{0, 0, 0};
  Dim3 thread{0, 0, 0};
  Space space = Space::kGeneric;
  uint64_t address = 0;
  uint32_t bytes = 0;
  std::string message;  // one sentence, with names, offsets and, of a race, the other access
  uint64_t count = 1;
};

// Exact counts over a launch.
struct Counters {
  uint64_t warp_instructions = 0;
  uint64_t thread_instructions = 0;
  // Floating-point operations; a fused multiply-add is two.
  uint64_t f16_flops = 0;
  uint64_t f32_flops = 0;
  uint64_t f64_flops = 0;
  uint64_t tensor_flops = 0;
  uint64_t special_operations = 0;  // approximate functions, a thread
  uint64_t integer_operations = 0;
  // Bytes that threads asked for.
  uint64_t global_load_bytes = 0;
  uint64_t global_store_bytes = 0;
  uint64_t shared_load_bytes = 0;
  uint64_t shared_store_bytes = 0;
  uint64_t local_bytes = 0;
  uint64_t atomic_operations = 0;
  // 32-byte sectors touched, and the least that could hold the bytes: their ratio is the
  // coalescing.
  uint64_t global_sectors = 0;
  uint64_t global_sectors_least = 0;
  uint64_t shared_accesses = 0;        // warp instructions on shared memory
  uint64_t shared_bank_conflicts = 0;  // passes beyond the first
  uint64_t branches = 0;               // that a lane takes
  uint64_t divergent_branches = 0;
  uint64_t barriers = 0;  // arrivals of warps

  void Add(const Counters& other);
};

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_REPORT_H_
