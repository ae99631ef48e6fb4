// What handlers may ask of the machine around them: faults, convergence, single accesses to memory.
//
// Everything here is for the thread that runs the warp's block.
#ifndef ASSAY_EMULATOR_EXECUTE_WARP_H_
#define ASSAY_EMULATOR_EXECUTE_WARP_H_

#include <cstdint>
#include <string>

#include "emulator/execute/lanes.h"
#include "emulator/report.h"

namespace assay::emulator {

// Records a fault of `lane` at `op`. Kinds that a device would not survive (out of bounds,
// misaligned, use after free, trap, assert, budgets, unsupported, divergent barriers) stop the
// launch: the event becomes kStopped and the handler returns.
void ReportFault(Warp* warp, const Op& op, int lane, FaultKind kind, std::string message);
void ReportMemoryFault(Warp* warp, const Op& op, int lane, FaultKind kind, Space space,
                       uint64_t address, uint32_t bytes, std::string message);

// Notes work that costs the host about as much as so many plain operations. From time to time it
// charges the launch for the thread's CPU time; when that is used up it is a fault at `op`, which
// stops the launch.
void Meter(Warp* warp, const Op& op, uint64_t weight);

// True when a fault of this kind was recorded at `op` before: it is counted then, and its text need
// not be made. Ask where faults may come in floods.
bool CountKnownFault(Warp* warp, const Op& op, FaultKind kind);

// For operations with a member mask (.sync): true when every lane of `members` that is live is in
// `mask`, so that the operation can go on for `mask`. Otherwise `mask` is parked until the others
// arrive, the rest of warp->active goes on behind the operation, warp->active becomes 0 and the
// handler returns at once; it is called again. A lane of `mask` that `members` does not name is
// reported as kAbsentLane; one that is named and has exited, or never was, counts as arrived.
bool Converge(Warp* warp, const Op& op, uint32_t mask, uint32_t members);

// Converge, after which all that the lanes did before is ordered before what they do next:
// bar.warp.sync.
void WarpBarrier(Warp* warp, const Op& op, uint32_t mask, uint32_t members);

// One lane's access with every check, `bytes` of 1 to 16 and naturally aligned. `space` kGeneric
// looks at the address. False: a fault was reported; when the event is kStopped the handler
// returns.
bool LoadLane(Warp* warp, const Op& op, int lane, Space space, uint64_t address, uint32_t bytes,
              void* value);
bool StoreLane(Warp* warp, const Op& op, int lane, Space space, uint64_t address, uint32_t bytes,
               const void* value);

// A number that follows from the launch's seed, this block and how often it was asked: for choices
// that hardware leaves open.
uint64_t NextRandom(Warp* warp);

// Whether approximate functions shall err within their documented bounds
// (LaunchOptions::perturb_approximations).
bool PerturbApproximations(Warp* warp);

// What %clock and %globaltimer show: a count that follows from the operations that were executed,
// never from real time, and grows between two reads of one warp.
uint64_t ClockOf(Warp* warp);

// Text of printf; a fault kPrintfFlood beyond a launch's limit.
void WriteOutput(Warp* warp, const Op& op, int lane, std::string_view text);

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_EXECUTE_WARP_H_
