// The inner loop: warps of a block in turns, in each the group of lanes that is furthest behind.
//
// Lanes of a warp that are at the same operation form a group. Of the groups that can go on, the
// one whose basic block comes first in reverse post-order runs (the thread frontiers of Diamos et
// al. 2011), so that lanes meet again early and unstructured code needs no analysis.
#include <algorithm>
#include <bit>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "emulator/execute/block.h"
#include "emulator/execute/warp.h"

namespace assay::emulator {
namespace {

// Operations that a warp executes in a row while others could; natural order runs a warp until it
// waits.
constexpr uint64_t kTurn = 50'000;
constexpr uint64_t kFuzzedTurnMax = 512;
// What a turn costs beside its operations, in operations: also the beginning of a block.
constexpr uint64_t kTurnWeight = 256;
// Of so many choices between groups one goes to the group that waits longest, so that none starves
// behind a spinning one.
constexpr uint32_t kFairness = 64;

bool IsCovered(const LaneGroup& group, uint32_t live) {
  return (group.members & live & ~group.mask) == 0;
}

// Ready groups at the same operation become one, and so do parked ones.
void MergeGroups(std::vector<LaneGroup>* groups) {
  for (size_t i = 0; i < groups->size(); ++i) {
    for (size_t j = i + 1; j < groups->size();) {
      LaneGroup& a = (*groups)[i];
      const LaneGroup& b = (*groups)[j];
      if (a.pc == b.pc && a.members == b.members) {
        a.mask |= b.mask;
        groups->erase(groups->begin() + static_cast<ptrdiff_t>(j));
      } else {
        ++j;
      }
    }
  }
}

}  // namespace

bool WarpState::can_run() const {
  if (active != 0) return true;
  for (const LaneGroup& group : groups) {
    if (group.members == 0 || IsCovered(group, live)) return true;
  }
  // Nobody else of the warp can come: the lanes that are there are forced on.
  return !groups.empty() && at_barrier == 0;
}

bool Block::PickGroup(WarpState* warp) {
  if (warp->active != 0) {
    warp->groups.push_back({warp->pc, warp->active, 0});
    warp->active = 0;
  }
  std::vector<LaneGroup>& groups = warp->groups;
  if (groups.size() > 1) MergeGroups(&groups);
  const std::vector<uint32_t>& priority = program().priority;
  size_t ready = 0;
  size_t best = groups.size();
  for (size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].members != 0 && !IsCovered(groups[i], warp->live)) continue;
    ++ready;
    if (best == groups.size() || priority[groups[i].pc] < priority[groups[best].pc]) best = i;
  }
  if (ready == 0) return false;
  if (ready > 1) {
    const bool fair = ++warp->choices % kFairness == 0;
    const bool random = launch_.options.seed != 0 && Random() % 4 == 0;
    if (fair || random) {
      size_t skip = random ? Random() % ready : 0;
      for (size_t i = 0; i < groups.size(); ++i) {
        if (groups[i].members != 0 && !IsCovered(groups[i], warp->live)) continue;
        if (skip-- == 0) {
          best = i;
          break;
        }
      }
    }
  }
  warp->pc = groups[best].pc;
  warp->active = groups[best].mask;
  groups.erase(groups.begin() + static_cast<ptrdiff_t>(best));
  return true;
}

bool Block::ForceStuckGroup(WarpState* warp) {
  std::vector<LaneGroup>& groups = warp->groups;
  if (groups.empty()) return false;
  const auto first =
      std::min_element(groups.begin(), groups.end(), [&](const LaneGroup& a, const LaneGroup& b) {
        return program().priority[a.pc] < program().priority[b.pc];
      });
  const Op& op = program().ops[first->pc];
  const uint32_t missing = first->members & warp->live & ~first->mask;
  const bool barrier = absl::StartsWith(program().info[first->pc].opcode, "bar") &&
                       !absl::StartsWith(program().info[first->pc].opcode, "bar.warp");
  const int lane = std::countr_zero(first->mask);
  warp->pc = first->pc;
  warp->active = first->mask;
  groups.erase(first);
  if (barrier) {
    ReportFault(
        warp, op, lane, FaultKind::kDivergentBarrier,
        absl::StrCat("lanes 0x", absl::Hex(warp->active), " of the warp wait here for lanes 0x",
                     absl::Hex(missing), ", which took another way and will not come"));
  } else {
    ReportFault(warp, op, lane, FaultKind::kAbsentLane,
                absl::StrCat("lanes 0x", absl::Hex(missing),
                             " are named in the member mask and never come here"));
  }
  warp->forced = true;
  return true;
}

void Block::RunWarp(WarpState* warp, uint64_t quantum) {
  const Op* const ops = program().ops.data();
  OpCounts& counts = executor_.op_counts;
  uint64_t fuel = quantum;
  while (fuel > 0) {
    if (warp->active == 0 || !warp->groups.empty()) {
      if (!PickGroup(warp) && (warp->at_barrier != 0 || !ForceStuckGroup(warp))) break;
      if (launch_.stop.load(std::memory_order_relaxed)) break;
    }
    warp->event = WarpEvent::kNone;
    const bool alone = warp->groups.empty();
    const uint64_t before = fuel;
    const uint32_t active = warp->active;  // changes with an event only
    uint32_t pc = warp->pc;
    uint32_t row = pc;  // where operations in a row begin that were not counted yet
    do {
      const Op& op = ops[pc++];
      warp->pc = pc;
      --fuel;
      uint32_t mask = active;
      if (op.guard != kNoRegister) {
        const uint32_t guard = PredicateLanes(warp, op.guard);
        mask &= op.guard_negated ? ~guard : guard;
        if (mask != active) counts.Leave(pc - 1, active, mask);
        if (mask == 0) continue;
      }
      op.handler(warp, op, mask);
      if (warp->pc != pc) {
        counts.AddRow(row, pc, active);
        row = pc = warp->pc;
      }
    } while (warp->event == WarpEvent::kNone && fuel > 0 && (alone || !ops[pc].leader));
    if (row != pc) counts.AddRow(row, pc, active);
    warp->executed += before - fuel;
    if (warp->event == WarpEvent::kStopped) break;
  }
  const auto used = static_cast<int64_t>(quantum - fuel);
  const uint32_t pc = std::min<uint32_t>(warp->pc, static_cast<uint32_t>(program().ops.size() - 1));
  if (launch_.instructions_left.fetch_sub(used, std::memory_order_relaxed) < used &&
      !launch_.stop) {
    const uint32_t lanes = warp->active != 0 ? warp->active : std::max(1u, warp->live);
    ReportFault(warp, program().ops[pc], std::countr_zero(lanes), FaultKind::kInstructionBudget,
                absl::StrCat("the launch executed ", launch_.options.instructions_max,
                             " warp instructions and has not ended; it loops for ever, or the "
                             "workload is too large"));
  }
  Meter(warp, program().ops[pc], kTurnWeight + static_cast<uint64_t>(used));
}

WarpState* Block::NextWarp() {
  const uint32_t count = warp_count();
  uint32_t start = next_warp_;
  if (launch_.options.seed != 0) start = static_cast<uint32_t>(Random() % count);
  for (uint32_t i = 0; i < count; ++i) {
    WarpState* const warp = warps_[(start + i) % count].get();
    if (!warp->finished() && warp->can_run()) {
      next_warp_ = (start + i + 1) % count;
      return warp;
    }
  }
  return nullptr;
}

bool Block::Run(uint64_t quantum) {
  ++executor_.shared_version;
  uint64_t used = 0;
  while (!launch_.stop.load(std::memory_order_relaxed)) {
    WarpState* const warp = NextWarp();
    if (warp == nullptr) {
      const auto stuck =
          std::find_if(warps_.begin(), warps_.end(), [](const auto& w) { return !w->finished(); });
      if (stuck == warps_.end()) {
        Finish();
        return true;
      }
      bool forced = false;
      for (const auto& w : warps_)
        forced = forced || (!w->finished() && !w->groups.empty() && ForceStuckGroup(w.get()));
      if (!forced) ReportDeadlock();
      continue;
    }
    if (used >= quantum) return false;
    const uint64_t turn = launch_.options.seed == 0 ? kTurn : 1 + Random() % kFuzzedTurnMax;
    const uint64_t before = warp->executed;
    RunWarp(warp, std::min(turn, quantum));
    used += std::max<uint64_t>(1, warp->executed - before);
  }
  Finish();
  return true;
}

void Block::ReportDeadlock() {
  for (const auto& warp : warps_) {
    if (warp->finished()) continue;
    for (uint32_t id = 0; id < 16; ++id) {
      for (const BarrierState::Waiter& waiter : barriers_[id].waiters) {
        if (waiter.warp != warp->index || !waiter.waits) continue;
        const uint32_t expected = barriers_[id].expected;
        ReportFault(warp.get(), program().ops[waiter.pc], std::countr_zero(waiter.mask),
                    FaultKind::kDeadlock,
                    absl::StrCat("every thread that is left waits; barrier ", id, " has ",
                                 barriers_[id].arrived, " of ",
                                 expected == 0 ? "all" : absl::StrCat(expected), " threads"));
        launch_.stop = true;
        return;
      }
    }
  }
  launch_.stop = true;
}

}  // namespace assay::emulator
