#include "emulator/execute/warp.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "emulator/execute/block.h"

namespace assay::emulator {
namespace {

// What a device does not survive; the rest is recorded and the kernel goes on.
bool EndsLaunch(FaultKind kind) {
  switch (kind) {
    case FaultKind::kOutOfBounds:
    case FaultKind::kMisaligned:
    case FaultKind::kUseAfterFree:
    case FaultKind::kInputWritten:
    case FaultKind::kDivergentBarrier:
    case FaultKind::kDeadlock:
    case FaultKind::kInstructionBudget:
    case FaultKind::kTrap:
    case FaultKind::kAssert:
    case FaultKind::kPrintfFlood:
    case FaultKind::kUnsupported:
    case FaultKind::kTimeBudget:
      return true;
    default:
      return false;
  }
}

uint32_t OpIndex(const Warp* warp, const Op& op) { return static_cast<uint32_t>(&op - warp->ops); }

void StopIfFatal(Warp* warp, FaultKind kind) {
  if (!EndsLaunch(kind)) return;
  warp->block->launch().stop = true;
  warp->event = WarpEvent::kStopped;
}

}  // namespace

bool CountKnownFault(Warp* warp, const Op& op, FaultKind kind) {
  Executor& executor = warp->block->executor();
  const uint32_t pc = OpIndex(warp, op);
  if ((executor.known_faults[pc] >> static_cast<int>(kind) & 1) == 0) return false;
  ++executor.more_faults[{kind, pc}];
  StopIfFatal(warp, kind);
  return true;
}

void ReportFault(Warp* warp, const Op& op, int lane, FaultKind kind, std::string message) {
  ReportMemoryFault(warp, op, lane, kind, Space::kGeneric, 0, 0, std::move(message));
}

void ReportMemoryFault(Warp* warp, const Op& op, int lane, FaultKind kind, Space space,
                       uint64_t address, uint32_t bytes, std::string message) {
  if (CountKnownFault(warp, op, kind)) return;
  Block& block = *warp->block;
  const Program& program = block.program();
  const uint32_t pc = OpIndex(warp, op);
  block.launch().faults.Add(kind, pc, [&] {
    Fault fault;
    fault.kind = kind;
    fault.kernel = program.kernel;
    fault.opcode = program.info[pc].opcode;
    fault.location = program.info[pc].location;
    const auto file = static_cast<size_t>(std::max(0, fault.location.file));
    if (file < program.files.size()) fault.file = program.files[file];
    fault.block = block.index();
    fault.thread = block.ThreadIndex(warp->index * kLanes + static_cast<uint32_t>(lane));
    fault.space = space;
    fault.address = address;
    fault.bytes = bytes;
    fault.message = std::move(message);
    return fault;
  });
  block.executor().known_faults[pc] |= 1u << static_cast<int>(kind);
  StopIfFatal(warp, kind);
}

void Meter(Warp* warp, const Op& op, uint64_t weight) {
  Executor& executor = warp->block->executor();
  executor.unmetered += weight;
  if (executor.unmetered < kMeteredEvery) return;
  executor.unmetered = 0;
  LaunchState& launch = warp->block->launch();
  if (launch.stop) {
    warp->event = WarpEvent::kStopped;
    return;
  }
  if (ChargeTime(&launch, &executor) > 0) return;
  const uint32_t lanes = warp->active != 0 ? warp->active : std::max(1u, warp->live);
  ReportFault(
      warp, op, std::countr_zero(lanes), FaultKind::kTimeBudget,
      absl::StrCat("the launch has not ended within the ",
                   static_cast<double>(std::max<int64_t>(0, launch.options.cpu_ns_max)) / 1e9,
                   " s of CPU time that its emulation had left; take a smaller workload, or "
                   "accesses that cost less to emulate: fewer scattered atomics and fences"));
}

bool Converge(Warp* warp, const Op& op, uint32_t mask, uint32_t members) {
  WarpState* const state = StateOf(warp);
  if (state->forced) {
    state->forced = false;
    return true;
  }
  if ((mask & ~members) != 0) {
    if (CountKnownFault(warp, op, FaultKind::kAbsentLane)) return true;
    ReportFault(warp, op, std::countr_zero(mask & ~members), FaultKind::kAbsentLane,
                absl::StrCat("the member mask 0x", absl::Hex(members), " does not name lanes 0x",
                             absl::Hex(mask & ~members), ", which execute this"));
    return true;
  }
  if ((members & warp->live & ~mask) == 0) return true;
  const uint32_t pc = OpIndex(warp, op);
  // The rest of the group has nothing to do here and goes on; those that wait join others that wait
  // here.
  if ((warp->active & ~mask) != 0) state->groups.push_back({pc + 1, warp->active & ~mask, 0});
  warp->active = 0;
  state->groups.push_back({pc, mask, members});
  warp->event = WarpEvent::kParked;
  return false;
}

void WarpBarrier(Warp* warp, const Op& op, uint32_t mask, uint32_t members) {
  if (Converge(warp, op, mask, members)) warp->block->StepClock(StateOf(warp));
}

uint64_t NextRandom(Warp* warp) { return warp->block->Random(); }

void WriteOutput(Warp* warp, const Op& op, int lane, std::string_view text) {
  LaunchState& launch = warp->block->launch();
  if (launch.output_bytes.fetch_add(text.size()) + text.size() > launch.options.output_bytes_max) {
    ReportFault(
        warp, op, lane, FaultKind::kPrintfFlood,
        absl::StrCat("the launch prints more than ", launch.options.output_bytes_max, " bytes"));
    return;
  }
  warp->block->output()->append(text);
}

uint64_t ClockOf(Warp* warp) {
  // What was executed is counted when a row of operations ends: the next read shall see this one.
  warp->event = WarpEvent::kRegroup;
  const LaunchOptions& options = warp->block->launch().options;
  return options.clock_offset + options.clock_rate * StateOf(warp)->executed;
}

bool PerturbApproximations(Warp* warp) {
  return warp->block->launch().options.perturb_approximations;
}

}  // namespace assay::emulator
