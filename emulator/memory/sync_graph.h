// Which blocks have seen what of each other through atomics and fences: the last-block pattern,
// tickets, flags, grid barriers.
//
// A warp that has fenced and then writes a location atomically releases there what it knows; a
// block that reads the location atomically acquires all that was released there before. An access
// is ordered before a block when its warp released it and the block acquired that release, or
// acquired one of somebody who had. Thread-safe.
//
// What a graph keeps grows with the square of the locations that fenced atomics scatter over: each
// release keeps what its block had acquired until then. A graph for which its budget has no more
// forgets everything, and from then on all that it is asked of counts as ordered.
#ifndef ASSAY_EMULATOR_MEMORY_SYNC_GRAPH_H_
#define ASSAY_EMULATOR_MEMORY_SYNC_GRAPH_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace assay::emulator {

// Bytes of the host's memory that sync graphs may take together. Thread-safe.
class SyncBudget {
 public:
  explicit SyncBudget(uint64_t bytes) : left_(bytes) {}
  SyncBudget(const SyncBudget&) = delete;

  // False: there are not so many left.
  bool Take(uint64_t bytes) {
    uint64_t left = left_.load(std::memory_order_relaxed);
    do {
      if (left < bytes) return false;
    } while (!left_.compare_exchange_weak(left, left - bytes, std::memory_order_relaxed));
    return true;
  }
  void Give(uint64_t bytes) { left_.fetch_add(bytes, std::memory_order_relaxed); }
  uint64_t left() const { return left_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> left_;
};

class SyncGraph {
 public:
  // `budget` must outlive the graph.
  explicit SyncGraph(SyncBudget* budget) : budget_(*budget) {}
  ~SyncGraph() { Clear(); }
  SyncGraph(const SyncGraph&) = delete;

  // Nobody released anything, so that nothing can be acquired.
  bool empty() const { return empty_.load(std::memory_order_relaxed); }

  // `known` are the clocks that the releasing warp knows of its block's warps, its own among them.
  void Release(uint64_t address, uint32_t block, std::span<const uint32_t> known);
  void Acquire(uint64_t address, uint32_t block);

  // Whether `to_block` knows of what `warp` of `from_block` did at `clock`. True also when the
  // search gets too long, and when the budget was used up.
  bool IsOrdered(uint32_t from_block, uint32_t warp, uint32_t clock, uint32_t to_block) const;

  void Clear();

 private:
  struct Location;
  // The first `count` releases of a location.
  struct Acquired {
    const Location* location = nullptr;
    size_t count = 0;
  };
  // Paid for as long as a block or a release holds it.
  struct AcquiredSet {
    AcquiredSet(SyncBudget* b, uint64_t n) : budget(*b), bytes(n) {}
    AcquiredSet(const AcquiredSet&) = delete;
    ~AcquiredSet() { budget.Give(bytes); }
    SyncBudget& budget;
    const uint64_t bytes;
    std::vector<Acquired> all;
  };
  struct ReleaseRecord {
    uint32_t block = 0;
    std::vector<uint32_t> known;
    std::shared_ptr<const AcquiredSet> acquired;  // by the releasing block until then
  };
  struct Location {
    std::vector<ReleaseRecord> releases;
    std::unordered_map<uint32_t, std::vector<size_t>> by_block;  // indices into releases
    size_t seen = 0;  // of the releases, those that another block than the last one's has acquired
  };

  static bool HoldsDirectly(const Acquired& acquired, uint32_t from_block, uint32_t warp,
                            uint32_t clock, size_t* steps);
  // False, and nothing is kept any more, when the budget does not have them.
  bool Pay(uint64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveUp() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  SyncBudget& budget_;
  std::atomic<bool> empty_{true};
  mutable absl::Mutex mutex_;
  std::unordered_map<uint64_t, std::unique_ptr<Location>> locations_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<uint32_t, std::shared_ptr<const AcquiredSet>> blocks_ ABSL_GUARDED_BY(mutex_);
  uint64_t paid_ ABSL_GUARDED_BY(mutex_) = 0;  // beside acquired sets
  bool given_up_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_MEMORY_SYNC_GRAPH_H_
