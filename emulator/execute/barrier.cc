// Barriers of a block, and the clocks that they order accesses by.
#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"
#include "emulator/execute/barrier.h"
#include "emulator/execute/block.h"
#include "emulator/execute/warp.h"

namespace assay::emulator {

void Block::RefreshViews(WarpState* warp) {
  const uint32_t clock = warp->known[warp->index];
  uint64_t least = clock - 1;
  uint64_t most = 0;
  for (uint32_t w = 0; w < warp->known.size(); ++w) {
    if (w == warp->index) continue;
    least = std::min<uint64_t>(least, warp->known[w]);
    most = std::max<uint64_t>(most, warp->known[w]);
  }
  for (RaceView* view : {&warp->shared_view, &warp->global_view}) {
    view->known = warp->known.data();
    view->known_least = least;
    view->block_epoch = epoch_;
    view->uncertain = partial_sync_;
    view->level = !partial_sync_ && most <= least;
    view->own = PackStamp(
        {clock, warp->index * kLanes, Accessors::kThread, false, view->block, view->generation});
    view->summary = PackStamp({epoch_, 0, Accessors::kBlock, false, view->block, view->generation});
  }
  warp->global_view.uncertain = partial_sync_ || !launch_.sync.empty();
  ++executor_.shared_version;
}

void Block::StepClock(WarpState* warp) {
  uint32_t& clock = warp->known[warp->index];
  // After a million barriers accesses are no longer told apart: the stamps of the last one order
  // nothing.
  if (clock < kClockMax) ++clock;
  RefreshViews(warp);
}

void Block::JoinKnown(WarpState* warp, const std::vector<uint32_t>& known) {
  for (size_t w = 0; w < known.size() && w < warp->known.size(); ++w) {
    if (w != warp->index) warp->known[w] = std::max(warp->known[w], known[w]);
  }
  RefreshViews(warp);
}

bool Block::ArriveAtBarrier(WarpState* warp, const Op& op, uint32_t mask, uint32_t id,
                            uint32_t expected, bool waits, uint32_t set_count) {
  BarrierState& barrier = barriers_[id];
  const auto pc = static_cast<uint32_t>(&op - program().ops.data());
  const int lane = std::countr_zero(mask);
  ++executor_.counters.barriers;
  if (!barrier.waiters.empty() && barrier.expected != expected) {
    ReportFault(warp, op, lane, FaultKind::kMismatchedBarrier,
                absl::StrCat(
                    "barrier ", id, " is used for ", expected == 0 ? "all" : absl::StrCat(expected),
                    " threads here and for ",
                    barrier.expected == 0 ? "all" : absl::StrCat(barrier.expected), " at PTX line ",
                    program().info[barrier.waiters.front().pc].location.ptx_line));
    launch_.stop = true;  // nobody can say when it opens
    warp->event = WarpEvent::kStopped;
    return false;
  }
  barrier.expected = expected;
  uint32_t before = 0;
  for (const BarrierState::Waiter& waiter : barrier.waiters)
    before |= waiter.warp == warp->index ? waiter.mask : 0;
  barrier.lanes += static_cast<uint32_t>(std::popcount(mask));
  // Counts are in whole warps, also where a warp has fewer threads; they may come one by one.
  const bool complete = expected != 0 && (warp->live & ~(before | mask)) == 0;
  barrier.arrived +=
      static_cast<uint32_t>(complete ? kLanes - std::popcount(before) : std::popcount(mask));
  barrier.set_count += set_count;
  barrier.waiters.push_back({warp->index, pc, mask, waits});
  if (waits) {
    if ((warp->active & ~mask) != 0) warp->groups.push_back({pc + 1, warp->active & ~mask, 0});
    warp->active = 0;
    warp->at_barrier |= mask;
    warp->event = WarpEvent::kParked;
  }
  CheckBarriers();
  return true;
}

void Block::CheckBarriers() {
  uint32_t live = 0;
  for (const auto& warp : warps_) live += static_cast<uint32_t>(std::popcount(warp->live));
  for (uint32_t id = 0; id < 16; ++id) {
    BarrierState& barrier = barriers_[id];
    if (barrier.waiters.empty()) continue;
    if (barrier.arrived >= (barrier.expected == 0 ? live : barrier.expected))
      OpenBarrier(&barrier, id);
  }
}

void Block::OpenBarrier(BarrierState* barrier, uint32_t id) {
  const BarrierState done = std::exchange(*barrier, {});
  // __syncthreads() must be the same one for the whole block; a barrier with a count says itself
  // who meets whom.
  for (const BarrierState::Waiter& waiter : done.waiters) {
    if (done.expected != 0 || waiter.pc == done.waiters.front().pc) continue;
    ReportFault(
        &warp(waiter.warp), program().ops[waiter.pc], std::countr_zero(waiter.mask),
        FaultKind::kMismatchedBarrier,
        absl::StrCat("threads of one block meet in barrier ", id, " here and at PTX line ",
                     program().info[done.waiters.front().pc].location.ptx_line, ", source line ",
                     program().info[done.waiters.front().pc].location.line));
    break;
  }
  // What has ended is behind a barrier of all, and took no part in one with a count.
  const auto took_part_by_ending = [&](const auto& w) {
    return done.expected == 0 && w->finished();
  };
  std::vector<uint32_t> joined(warps_.size(), 0);
  for (const auto& w : warps_) {
    if (took_part_by_ending(w)) joined[w->index] = w->known[w->index];
  }
  std::vector<bool> here(warps_.size(), false);
  for (const BarrierState::Waiter& waiter : done.waiters) {
    here[waiter.warp] = true;
    const std::vector<uint32_t>& known = warp(waiter.warp).known;
    for (size_t w = 0; w < joined.size(); ++w) joined[w] = std::max(joined[w], known[w]);
  }
  bool whole = true;
  for (const auto& w : warps_) whole = whole && (here[w->index] || took_part_by_ending(w));
  partial_sync_ = !whole;
  if (whole) {
    // From here on all have the same clock, and know all that happened before it.
    epoch_ = std::min(kClockMax, 1 + *std::max_element(joined.begin(), joined.end()));
    for (const auto& w : warps_) w->known.assign(w->known.size(), epoch_ - 1);
    for (const auto& w : warps_) w->known[w->index] = epoch_;
  }
  std::vector<bool> stepped(warps_.size(), whole);
  for (const BarrierState::Waiter& waiter : done.waiters) {
    WarpState& w = warp(waiter.warp);
    if (waiter.waits) {
      FinishBarrierReduction(&w, program().ops[waiter.pc], waiter.mask, done.set_count, done.lanes);
      w.at_barrier &= ~waiter.mask;
      w.groups.push_back({waiter.pc + 1, waiter.mask, 0});
      for (size_t i = 0; i < joined.size() && !whole; ++i) {
        if (i != waiter.warp) w.known[i] = std::max(w.known[i], joined[i]);
      }
    }
    if (!stepped[waiter.warp]) StepClock(&w);
    stepped[waiter.warp] = true;
  }
  for (const auto& w : warps_) RefreshViews(w.get());
}

}  // namespace assay::emulator
