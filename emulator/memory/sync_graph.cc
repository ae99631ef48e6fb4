#include "emulator/memory/sync_graph.h"

#include <algorithm>
#include <iterator>
#include <map>

namespace assay::emulator {
namespace {

// Releases and acquired locations looked at before a search is given up.
constexpr size_t kSearchMax = 200'000;

// About what entries take of the host's memory, with hash tables, growing vectors and the
// allocator's own.
constexpr uint64_t kLocationBytes = 256;
constexpr uint64_t kReleaseBytes = 320;  // and its clocks
constexpr uint64_t kBlockBytes = 64;
constexpr uint64_t kSetBytes = 96;  // and its locations

}  // namespace

bool SyncGraph::Pay(uint64_t bytes) {
  if (!budget_.Take(bytes)) {
    GiveUp();
    return false;
  }
  paid_ += bytes;
  return true;
}

void SyncGraph::GiveUp() {
  Forget();
  given_up_ = true;
}

void SyncGraph::Forget() {
  locations_.clear();
  blocks_.clear();
  budget_.Give(paid_);
  paid_ = 0;
}

void SyncGraph::Release(uint64_t address, uint32_t block, std::span<const uint32_t> known) {
  const absl::MutexLock lock(&mutex_);
  if (given_up_) return;
  empty_.store(false, std::memory_order_relaxed);
  if (!locations_.contains(address) && !Pay(kLocationBytes)) return;
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
  if (!Pay(kReleaseBytes + known.size() * sizeof(uint32_t))) return;
  location->by_block[block].push_back(location->releases.size());
  location->releases.push_back({block, std::vector<uint32_t>(known.begin(), known.end()),
                                acquired == blocks_.end() ? nullptr : acquired->second});
}

void SyncGraph::Acquire(uint64_t address, uint32_t block) {
  const absl::MutexLock lock(&mutex_);
  const auto found = locations_.find(address);
  if (found == locations_.end()) return;
  Location* const location = found->second.get();
  if (location->releases.back().block != block) location->seen = location->releases.size();
  if (!blocks_.contains(block) && !Pay(kBlockBytes)) return;
  std::shared_ptr<const AcquiredSet>& set = blocks_[block];
  size_t count = 1;
  if (set != nullptr) {
    const auto same = std::find_if(set->all.begin(), set->all.end(),
                                   [&](const Acquired& a) { return a.location == location; });
    if (same != set->all.end() && same->count == location->releases.size()) return;
    count = set->all.size() + static_cast<size_t>(same == set->all.end());
  }
  const uint64_t bytes = kSetBytes + count * sizeof(Acquired);
  if (!budget_.Take(bytes)) return GiveUp();
  const auto next = std::make_shared<AcquiredSet>(&budget_, bytes);
  next->all.reserve(count);
  if (set != nullptr) {
    std::copy_if(set->all.begin(), set->all.end(), std::back_inserter(next->all),
                 [&](const Acquired& a) { return a.location != location; });
  }
  next->all.push_back({location, location->releases.size()});
  set = next;
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
  if (given_up_) return true;
  const auto start = blocks_.find(to_block);
  if (start == blocks_.end()) return false;
  std::vector<Acquired> open = start->second->all;
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
      for (const Acquired& next : release.acquired->all) {
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
  Forget();
  given_up_ = false;
  empty_.store(true, std::memory_order_relaxed);
}

}  // namespace assay::emulator
