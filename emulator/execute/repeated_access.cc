#include "emulator/execute/repeated_access.h"

#include <immintrin.h>

#include <bit>

#include "emulator/execute/access_pattern.h"
#include "emulator/execute/block.h"
#include "emulator/execute/memory_access.h"
#include "emulator/memory/bits.h"
#include "emulator/memory/race_run.h"

namespace assay::emulator {
namespace {

// Lanes whose address is as far from the lead's as it was, and the lead's address.
inline uint32_t SameLanes(const Warp* warp, const Op& op, const LanePattern& pattern,
                          uint64_t* start) {
  uint32_t same = 0;
  if ((op.extra & kNarrowAddress) != 0) {
    const uint32_t* const base = Lanes<uint32_t>(warp, op.a);
    const uint32_t lead = base[pattern.lead];
    const __m256i leads = _mm256_set1_epi32(static_cast<int>(lead));
    for (int i = 0; i < kLanes; i += 8) {
      const __m256i eight = _mm256_load_si256(reinterpret_cast<const __m256i*>(base + i));
      const __m256i known =
          _mm256_load_si256(reinterpret_cast<const __m256i*>(pattern.relative + i));
      const __m256i equal = _mm256_cmpeq_epi32(_mm256_sub_epi32(eight, leads), known);
      same |= static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(equal))) << i;
    }
    *start = lead + static_cast<uint32_t>(op.data);
    *start &= 0xffffffffu;
    return same;
  }
  const uint64_t* const base = Lanes<uint64_t>(warp, op.a);
  const uint64_t lead = base[pattern.lead];
  const __m256i leads = _mm256_set1_epi64x(static_cast<int64_t>(lead));
  for (int i = 0; i < kLanes; i += 4) {
    const __m256i four = _mm256_load_si256(reinterpret_cast<const __m256i*>(base + i));
    const __m256i known = _mm256_cvtepu32_epi64(
        _mm_load_si128(reinterpret_cast<const __m128i*>(pattern.relative + i)));
    const __m256i equal = _mm256_cmpeq_epi64(_mm256_sub_epi64(four, leads), known);
    same |= static_cast<uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(equal))) << i;
  }
  *start = lead + op.data;
  return same;
}

// The operation's pattern when the lanes lie as it says and are aligned.
inline LanePattern* FindPattern(Warp* warp, const Op& op, uint32_t mask, uint32_t bytes,
                                uint64_t* start) {
  Block& block = *warp->block;
  const auto index = static_cast<size_t>(&op - warp->ops);
  LanePattern* const pattern = block.executor().patterns[index].get();
  if (pattern == nullptr || pattern->mask != mask || pattern->bytes != bytes) return nullptr;
  if (op.a == kNoRegister) {
    *start = op.data;
    if (pattern->span != bytes) return nullptr;
  } else if ((SameLanes(warp, op, *pattern, start) & mask) != mask) {
    return nullptr;
  }
  return (*start & (bytes - 1)) == 0 ? pattern : nullptr;
}

inline bool IsInitialized(const uint64_t* bits, uint64_t offset, const LanePattern& pattern) {
  for (uint32_t i = 0; i < pattern.run_count; ++i) {
    const LanePattern::Run& run = pattern.runs[i];
    if (!AllBitsSet(bits, offset + run.from, run.bytes)) return false;
  }
  return true;
}

inline void MarkInitialized(uint64_t* bits, uint64_t offset, const LanePattern& pattern) {
  for (uint32_t i = 0; i < pattern.run_count; ++i)
    SetBits(bits, offset + pattern.runs[i].from, pattern.runs[i].bytes);
}

// Calls f(race words, how many places, their owners) for each run until it says false.
template <typename F>
inline bool EachRun(uint64_t* race, uint64_t offset, const LanePattern& pattern, F&& f) {
  const uint8_t* owner = pattern.owner;
  for (uint32_t i = 0; i < pattern.run_count; ++i) {
    const LanePattern::Run& run = pattern.runs[i];
    const uint32_t count = run.bytes / 4;
    if (!f(race + (offset + run.from) / 4 * 2, count, owner)) return false;
    owner += count;
  }
  return true;
}

// Whether a load of shared memory reads what is there and races with nothing.
bool CheckSharedLoad(Block* block, const WarpState& warp, uint64_t offset, uint32_t bytes,
                     LanePattern* pattern) {
  const uint64_t version = block->executor().shared_version;
  if (pattern->settled_version == version && pattern->settled_at == offset) return true;
  if (!IsInitialized(block->shared_initialized(), offset, *pattern)) return false;
  bool settled = true;
  if (block->launch().options.check_races) {
    if (bytes < 4) return false;
    settled = warp.shared_view.level;
    const auto read = [&](uint64_t* words, uint32_t count, const uint8_t* owner) {
      const RunOrder order = ReadSharedRun(words, count, owner, warp.shared_view);
      settled = settled && order == RunOrder::kSettled;
      return order != RunOrder::kUnsure;
    };
    if (!EachRun(block->shared_race(), offset, *pattern, read)) return false;
  }
  if (settled) {
    pattern->settled_at = offset;
    pattern->settled_version = version;
  }
  return true;
}

bool CheckSharedStore(Block* block, const WarpState& warp, uint64_t offset, uint32_t bytes,
                      const LanePattern& pattern) {
  if (block->launch().options.check_races) {
    if (bytes < 4) return false;
    ++block->executor().shared_version;
    const auto write = [&](uint64_t* words, uint32_t count, const uint8_t* owner) {
      return WriteSharedRun(words, count, owner, warp.shared_view);
    };
    if (!EachRun(block->shared_race(), offset, pattern, write)) return false;
  }
  MarkInitialized(block->shared_initialized(), offset, pattern);
  return true;
}

template <bool kStore>
bool PrepareShared(Warp* warp, uint32_t mask, uint64_t start, uint32_t bytes, LanePattern* pattern,
                   RepeatedAccess* access) {
  Block& block = *warp->block;
  const uint64_t offset = start - kSharedBase;
  if (!pattern->shared || offset >= block.shared_bytes() ||
      pattern->span > block.shared_bytes() - offset)
    return false;
  const WarpState& state = *StateOf(warp);
  if (!(kStore ? CheckSharedStore(&block, state, offset, bytes, *pattern)
               : CheckSharedLoad(&block, state, offset, bytes, pattern)))
    return false;
  Counters& counters = block.executor().counters;
  (kStore ? counters.shared_store_bytes : counters.shared_load_bytes) +=
      static_cast<uint64_t>(std::popcount(mask)) * bytes;
  ++counters.shared_accesses;
  counters.shared_bank_conflicts += pattern->conflicts;
  access->start = block.shared() + offset;
  return true;
}

void HoldRuns(PlaceLocks* locks, uint64_t start, const LanePattern& pattern, PlaceHold* hold) {
  PlaceSet places;
  for (uint32_t i = 0; i < pattern.run_count; ++i)
    places.AddRange(start + pattern.runs[i].from, pattern.runs[i].bytes);
  hold->Take(locks, places);
}

// Asks one check of race_run.h of every run until one says no.
template <auto kCheck>
bool AllRuns(const AllocationSlot& slot, const WarpState& warp, uint64_t offset,
             const LanePattern& pattern) {
  return EachRun(slot.race, offset, pattern,
                 [&](uint64_t* words, uint32_t count, const uint8_t* owner) {
                   return kCheck(words, count, owner, warp.global_view);
                 });
}

bool CheckGlobalReads(const AllocationSlot& slot, const WarpState& warp, uint64_t offset,
                      const LanePattern& pattern) {
  PlaceHold hold;
  if (PlaceLocks* const locks = warp.block->launch().place_locks.get(); locks != nullptr) {
    if (AllRuns<IsRecordedGlobalRun>(slot, warp, offset, pattern)) return true;
    HoldRuns(locks, slot.address + offset, pattern, &hold);
  }
  return AllRuns<ReadGlobalRun>(slot, warp, offset, pattern);
}

// `hold` has the places when it is true and there are others to keep away.
bool CheckGlobalWrites(const AllocationSlot& slot, const WarpState& warp, uint64_t offset,
                       const LanePattern& pattern, PlaceHold* hold) {
  if (PlaceLocks* const locks = warp.block->launch().place_locks.get(); locks != nullptr) {
    HoldRuns(locks, slot.address + offset, pattern, hold);
    // What was recorded and has not been written yet must not be seen.
    if (!AllRuns<MayWriteGlobalRun>(slot, warp, offset, pattern)) {
      hold->Release();
      return false;
    }
  }
  return AllRuns<WriteGlobalRun>(slot, warp, offset, pattern);
}

// `hold` is nullptr for loads.
template <bool kStore>
bool CheckGlobal(const AllocationSlot& slot, const WarpState& warp, uint64_t offset, uint32_t bytes,
                 const LanePattern& pattern, PlaceHold* hold) {
  if (!kStore && !IsInitialized(slot.initialized, offset, pattern)) return false;
  if (!slot.skip_race) {
    if (bytes < 4) return false;
    if (!(kStore ? CheckGlobalWrites(slot, warp, offset, pattern, hold)
                 : CheckGlobalReads(slot, warp, offset, pattern)))
      return false;
  }
  if (kStore) MarkInitialized(slot.initialized, offset, pattern);
  return true;
}

template <bool kStore>
bool PrepareGlobal(Warp* warp, const Op& op, uint32_t mask, uint64_t start, uint32_t bytes,
                   LanePattern* pattern, RepeatedAccess* access, PlaceHold* hold) {
  const AllocationSlot* const slot = FindSlot(warp, op, start);
  if (slot == nullptr || (kStore && !slot->writable)) return false;
  const uint64_t offset = start - slot->address;
  if (pattern->shared || pattern->span > slot->bytes - offset) return false;
  if (!CheckGlobal<kStore>(*slot, *StateOf(warp), offset, bytes, *pattern, hold)) return false;
  Counters& counters = warp->block->executor().counters;
  const uint64_t asked = static_cast<uint64_t>(std::popcount(mask)) * bytes;
  (kStore ? counters.global_store_bytes : counters.global_load_bytes) += asked;
  counters.global_sectors += CountSectors(pattern, start);
  counters.global_sectors_least += pattern->kind == Pattern::kBroadcast ? 1 : (asked + 31) / 32;
  access->start = slot->host + offset;
  return true;
}

template <bool kStore>
bool Prepare(Warp* warp, const Op& op, uint32_t mask, Space space, uint32_t bytes,
             RepeatedAccess* access, PlaceHold* hold) {
  if (space != Space::kShared && space != Space::kGlobal && space != Space::kConst) return false;
  uint64_t start = 0;
  LanePattern* const pattern = FindPattern(warp, op, mask, bytes, &start);
  if (pattern == nullptr || (kStore && pattern->repeated != 0)) return false;
  const bool passed =
      space == Space::kShared
          ? PrepareShared<kStore>(warp, mask, start, bytes, pattern, access)
          : PrepareGlobal<kStore>(warp, op, mask, start, bytes, pattern, access, hold);
  if (!passed) return false;
  pattern->changes = 0;
  access->pattern = pattern;
  return true;
}

}  // namespace

bool PrepareRepeatedLoad(Warp* warp, const Op& op, uint32_t mask, Space space, uint32_t bytes,
                         RepeatedAccess* access) {
  return Prepare<false>(warp, op, mask, space, bytes, access, nullptr);
}

bool PrepareRepeatedStore(Warp* warp, const Op& op, uint32_t mask, Space space, uint32_t bytes,
                          RepeatedAccess* access, PlaceHold* hold) {
  return Prepare<true>(warp, op, mask, space, bytes, access, hold);
}

}  // namespace assay::emulator
