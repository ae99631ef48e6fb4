#include "emulator/execute/race_report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "emulator/execute/block.h"
#include "emulator/execute/warp.h"

namespace assay::emulator {
namespace {

// Work on a sync graph, in plain operations: it grows with what the graph holds.
constexpr uint64_t kGraphWeight = 512;

void MeterGraph(Warp* warp) {
  Meter(warp, warp->ops[std::max(1u, StateOf(warp)->pc) - 1], kGraphWeight);
}

SyncGraph& GraphOf(Warp* warp, Space space) {
  return space == Space::kShared ? warp->block->shared_sync() : warp->block->launch().sync;
}

// Blocks in sync graphs: those of the launch, or the one block for its shared memory.
uint32_t GraphBlock(Warp* warp, Space space) {
  return space == Space::kShared ? 0 : StateOf(warp)->global_view.block;
}

bool IsOrderedByAtomics(Warp* warp, Space space, const RaceStamp& earlier) {
  // Flags may lie in the one memory and guard data in the other.
  for (const Space where : {Space::kGlobal, Space::kShared}) {
    const SyncGraph& graph = GraphOf(warp, where);
    if (graph.empty()) continue;
    if (where == Space::kShared && space == Space::kGlobal &&
        earlier.block != StateOf(warp)->global_view.block)
      continue;
    if (earlier.kind == Accessors::kBlock) return true;  // not told apart
    const uint32_t from = where == Space::kShared   ? 0
                          : space == Space::kShared ? StateOf(warp)->global_view.block
                                                    : earlier.block;
    if (graph.IsOrdered(from, earlier.warp(), earlier.clock, GraphBlock(warp, where))) return true;
  }
  return false;
}

std::string DescribeEarlier(Warp* warp, Space space, const RaceStamp& earlier, bool writes) {
  const char* const verb = earlier.atomic ? "updated atomically" : writes ? "written" : "read";
  const std::string same_block =
      space == Space::kShared || earlier.block == StateOf(warp)->global_view.block
          ? "of the same block"
      : earlier.block == kManyBlocks ? ""
                                     : absl::StrCat("of block number ", earlier.block);
  switch (earlier.kind) {
    case Accessors::kWarp:
      return absl::StrCat(verb, " by several threads of warp ", earlier.warp(), " ", same_block);
    case Accessors::kBlock:
      return absl::StrCat(verb, " by several ",
                          same_block.empty() ? "blocks" : absl::StrCat("warps ", same_block));
    default:
      break;
  }
  const Dim3 thread = warp->block->ThreadIndex(earlier.thread);
  return absl::StrCat(verb, " by thread (", thread.x, ", ", thread.y, ", ", thread.z, ") ",
                      same_block);
}

std::string NameOf(Warp* warp, Space space, uint64_t address) {
  if (space == Space::kShared) {
    const uint64_t offset = address - kSharedBase;
    for (const SharedVariable& variable : warp->block->program().shared_variables) {
      if (offset - variable.offset < variable.bytes) {
        return absl::StrCat("offset ", offset - variable.offset, " of ", variable.name);
      }
    }
    return absl::StrCat("offset ", offset, " of shared memory");
  }
  const Allocation* const allocation = warp->block->launch().memory->Find(address);
  if (allocation == nullptr) return absl::StrCat("0x", absl::Hex(address));
  return absl::StrCat("offset ", address - allocation->address, " of ", allocation->name);
}

}  // namespace

void ReportRace(Warp* warp, const Op& op, int lane, Space space, uint64_t address, uint32_t bytes,
                AccessKind kind, const RaceConflict& conflict) {
  const RaceStamp earlier = UnpackStamp(conflict.earlier);
  MeterGraph(warp);
  if (IsOrderedByAtomics(warp, space, earlier)) return;
  const FaultKind race = space == Space::kShared ? FaultKind::kSharedRace : FaultKind::kGlobalRace;
  if (CountKnownFault(warp, op, race)) return;
  ReportMemoryFault(warp, op, lane, race, space, address, bytes,
                    absl::StrCat(kind == AccessKind::kLoad    ? "read"
                                 : kind == AccessKind::kStore ? "write"
                                                              : "atomic update",
                                 " at ", NameOf(warp, space, address), ", which was ",
                                 DescribeEarlier(warp, space, earlier, conflict.earlier_writes),
                                 ", with nothing that orders the two"));
}

void AcquireAt(Warp* warp, Space space, uint64_t address) {
  SyncGraph& graph = GraphOf(warp, space);
  if (graph.empty()) return;
  MeterGraph(warp);
  graph.Acquire(address, GraphBlock(warp, space));
}

void ReleaseAt(Warp* warp, Space space, uint64_t address) {
  WarpState* const state = StateOf(warp);
  MeterGraph(warp);
  GraphOf(warp, space).Release(address, GraphBlock(warp, space), state->known);
  warp->block->StepClock(state);
}

}  // namespace assay::emulator
