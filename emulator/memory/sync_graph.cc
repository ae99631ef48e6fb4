#include "emulator/memory/sync_graph.h"

#include <algorithm>
#include <map>

namespace assay::emulator {
namespace {

// Releases and acquired locations looked at before a search is given up.
constexpr size_t kSearchMax = 200'000;

}  // namespace

void SyncGraph::Release(uint64_t address, uint32_t block, std::span<const uint32_t> known) {
  const absl::MutexLock lock(&mutex_);
  std::unique_ptr<Location>& location = locations_[address];
  if (location == nullptr) location = std::make_unique<Location>();
  const auto acquired = blocks_.find(block);
  if (location->releases.size() > location->seen && location->releases.back().block == block) {
    // Nobody else has seen the last one: this one takes its place.
    ReleaseRecord& last = location->releases.back();
    for (size_t w = 0; w < known.size(); ++w) last.known[w] = std::max(last.known[w], known[w]);
    if (acquired != blocks_.end()) last.acquired = acquired->second;
    return;
  }
  location->by_block[block].push_back(location->releases.size());
  location->releases.push_back({block, std::vector<uint32_t>(known.begin(), known.end()),
                                acquired == blocks_.end() ? nullptr : acquired->second});
  empty_.store(false, std::memory_order_relaxed);
}

void SyncGraph::Acquire(uint64_t address, uint32_t block) {
  const absl::MutexLock lock(&mutex_);
  const auto found = locations_.find(address);
  if (found == locations_.end()) return;
  Location* const location = found->second.get();
  if (location->releases.back().block != block) location->seen = location->releases.size();
  std::shared_ptr<const AcquiredSet>& set = blocks_[block];
  auto next = set == nullptr ? std::make_shared<AcquiredSet>() : nullptr;
  if (set != nullptr) {
    const auto same = std::find_if(set->begin(), set->end(),
                                   [&](const Acquired& a) { return a.location == location; });
    if (same != set->end() && same->count == location->releases.size()) return;
    next = std::make_shared<AcquiredSet>(*set);
    std::erase_if(*next, [&](const Acquired& a) { return a.location == location; });
  }
  next->push_back({location, location->releases.size()});
  set = std::move(next);
}

bool SyncGraph::HoldsDirectly(const Acquired& acquired, uint32_t from_block, uint32_t warp,
                              uint32_t clock, size_t* steps) {
  ++*steps;
  const auto found = acquired.location->by_block.find(from_block);
  if (found == acquired.location->by_block.end()) return false;
  const std::vector<ReleaseRecord>& releases = acquired.location->releases;
  for (const size_t index : found->second) {
    if (index >= acquired.count || ++*steps > kSearchMax) break;
    if (warp < releases[index].known.size() && releases[index].known[warp] >= clock) return true;
  }
  return false;
}

bool SyncGraph::IsOrdered(uint32_t from_block, uint32_t warp, uint32_t clock,
                          uint32_t to_block) const {
  if (empty()) return false;
  const absl::MutexLock lock(&mutex_);
  const auto start = blocks_.find(to_block);
  if (start == blocks_.end()) return false;
  std::vector<Acquired> open(start->second->begin(), start->second->end());
  size_t steps = 0;
  for (const Acquired& acquired : open) {
    if (HoldsDirectly(acquired, from_block, warp, clock, &steps)) return true;
    if (steps > kSearchMax) return true;
  }
  std::map<const Location*, size_t> seen;  // releases looked at, by location
  while (!open.empty()) {
    const Acquired acquired = open.back();
    open.pop_back();
    size_t& from = seen[acquired.location];
    for (; from < acquired.count; ++from) {
      if (++steps > kSearchMax) return true;
      const ReleaseRecord& release = acquired.location->releases[from];
      if (release.acquired == nullptr) continue;
      for (const Acquired& next : *release.acquired) {
        if (HoldsDirectly(next, from_block, warp, clock, &steps)) return true;
        if (steps > kSearchMax) return true;
        if (const auto it = seen.find(next.location); it == seen.end() || it->second < next.count)
          open.push_back(next);
      }
    }
  }
  return false;
}

void SyncGraph::Clear() {
  const absl::MutexLock lock(&mutex_);
  locations_.clear();
  blocks_.clear();
  empty_.store(true, std::memory_order_relaxed);
}

}  // namespace assay::emulator
