#include "emulator/execute/memory_access.h"

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "emulator/execute/access_pattern.h"
#include "emulator/execute/block.h"
#include "emulator/execute/race_report.h"
#include "emulator/execute/warp.h"
#include "emulator/memory/bits.h"

namespace assay::emulator {
namespace {

uint32_t OpIndex(const Warp* warp, const Op& op) { return static_cast<uint32_t>(&op - warp->ops); }

// Offsets of the lanes and what they have in common. False when one is out of [0, limit] or not
// aligned.
bool SortLanes(uint32_t mask, const uint64_t* addresses, uint64_t base, uint64_t limit,
               uint32_t bytes, WarpAccess* access) {
  const uint64_t first = addresses[std::countr_zero(mask)] - base;
  alignas(64) uint64_t filled[kLanes];
  if (mask != kAllLanes) {
    for (int lane = 0; lane < kLanes; ++lane)
      filled[lane] = (mask >> lane & 1) != 0 ? addresses[lane] : first + base;
    addresses = filled;
  }
  const auto all = [](uint64_t value) { return _mm256_set1_epi64x(static_cast<int64_t>(value)); };
  const __m256i bases = all(base);
  const __m256i limits = all(limit);
  const __m256i firsts = all(first);
  const __m256i step = all(uint64_t{4} * bytes);
  __m256i next =
      _mm256_add_epi64(firsts, _mm256_set_epi64x(3 * static_cast<int64_t>(bytes),
                                                 2 * static_cast<int64_t>(bytes), bytes, 0));
  __m256i out = _mm256_setzero_si256();
  __m256i low_bits = out;
  __m256i differs = out;
  __m256i jumps = out;
  for (int lane = 0; lane < kLanes; lane += 4) {
    const __m256i o = _mm256_sub_epi64(
        _mm256_load_si256(reinterpret_cast<const __m256i*>(addresses + lane)), bases);
    _mm256_store_si256(reinterpret_cast<__m256i*>(access->offset + lane), o);
    out =
        _mm256_or_si256(out, _mm256_or_si256(o, _mm256_sub_epi64(limits, o)));  // negative: too far
    low_bits = _mm256_or_si256(low_bits, o);
    differs = _mm256_or_si256(differs, _mm256_xor_si256(o, firsts));
    jumps = _mm256_or_si256(jumps, _mm256_xor_si256(o, next));
    next = _mm256_add_epi64(next, step);
  }
  if (_mm256_movemask_pd(_mm256_castsi256_pd(out)) != 0 ||
      _mm256_testz_si256(low_bits, all(bytes - 1)) == 0)
    return false;
  access->pattern = Pattern::kScattered;
  if (_mm256_testz_si256(differs, differs) != 0) {
    access->pattern = Pattern::kBroadcast;
  } else if (mask == kAllLanes && _mm256_testz_si256(jumps, jumps) != 0) {
    access->pattern = Pattern::kConsecutive;
  }
  return true;
}

// A naturally aligned value of at most 16 bytes lies in one word of the shadow.
bool IsInitialized(const uint64_t* bits, uint64_t offset, uint32_t bytes) {
  const uint64_t mask = BitRange(0, bytes);
  return (LoadBits(bits + (offset >> 6)) >> (offset & 63) & mask) == mask;
}

bool AllInitialized(const uint64_t* bits, uint32_t mask, uint32_t bytes, const WarpAccess& access) {
  switch (access.pattern) {
    case Pattern::kBroadcast:
      return IsInitialized(bits, access.offset[std::countr_zero(mask)], bytes);
    case Pattern::kConsecutive:
      return AllBitsSet(bits, access.offset[0], uint64_t{bytes} * kLanes);
    case Pattern::kScattered:
      break;
  }
  const uint64_t want = BitRange(0, bytes);
  uint64_t missing = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    const uint64_t o = access.offset[lane];
    missing |= ~(LoadBits(bits + (o >> 6)) >> (o & 63)) & want;
  }
  return missing == 0;
}

void MarkInitialized(uint64_t* bits, uint32_t mask, uint32_t bytes, const WarpAccess& access) {
  if (access.pattern == Pattern::kConsecutive) {
    SetBits(bits, access.offset[0], uint64_t{bytes} * kLanes);
    return;
  }
  EachLane(mask, [&](int lane) { SetBits(bits, access.offset[lane], bytes); });
}

// The bytes of the 4-byte word at `offset` that an access of `bytes` touches.
uint32_t WordBytes(uint64_t offset, uint32_t bytes) {
  return bytes >= 4 ? 0xf : BitRange(0, bytes) << (offset & 3) & 0xf;
}

// Whether a store writes what the conflicting one has written.
bool IsSameValue(const RaceView& view, const RaceConflict& conflict, int lane, uint32_t done,
                 uint32_t bytes, const WarpAccess& access) {
  if (access.values == nullptr) return false;
  const uint32_t here = std::min(bytes, 4u);
  const std::byte* const value = access.values + static_cast<size_t>(lane) * bytes + done;
  const RaceStamp earlier = UnpackStamp(conflict.earlier);
  const auto other = static_cast<int>(earlier.thread % kLanes);
  // Lanes of this very store have not reached memory yet.
  if (earlier.block == view.block && earlier.warp() == view.warp &&
      earlier.clock == view.known[view.warp] && access.offset[other] == access.offset[lane] &&
      std::memcmp(access.values + static_cast<size_t>(other) * bytes + done, value, here) == 0) {
    return true;
  }
  return std::memcmp(access.at(lane) + done, value, here) == 0;
}

void HoldOffsets(Warp* warp, uint32_t mask, uint64_t base_address, const WarpAccess& access,
                 PlaceHold* hold) {
  PlaceLocks* const locks = warp->block->launch().place_locks.get();
  if (locks == nullptr) return;
  PlaceSet places;
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1)
    places.Add(base_address + access.offset[std::countr_zero(rest)]);
  hold->Take(locks, places);
}

// Whether reads of whole words of global memory are in order as recorded, without holding them.
bool AreRecordedReads(Warp* warp, uint32_t mask, uint32_t bytes, const RaceWords& race,
                      const WarpAccess& access) {
  RaceView* const view = &StateOf(warp)->global_view;
  for (uint32_t rest = bytes < 4 ? 0 : mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    view->thread = warp->index * kLanes + static_cast<uint32_t>(lane);
    const uint64_t own = race_internal::Own(*view, false);
    for (uint32_t done = 0; done < bytes; done += 4) {
      const uint64_t word = (access.offset[lane] + done) / 4;
      if (!race_internal::IsRecordedRead(race.words + 2 * word, own, false, *view)) return false;
    }
  }
  return bytes >= 4;
}

// `repeated` are the lanes of `mask` that speak for several which read the same. Of global memory
// the caller holds what is written.
void RecordRaces(Warp* warp, const Op& op, uint32_t mask, uint32_t repeated, uint32_t bytes,
                 AccessKind kind, Space space, const RaceWords& race, uint64_t base_address,
                 const WarpAccess& access) {
  if (kind == AccessKind::kVolatileLoad) return;
  WarpState* const state = StateOf(warp);
  RaceView* const view = space == Space::kShared ? &state->shared_view : &state->global_view;
  if (space == Space::kShared && kind != AccessKind::kLoad)
    ++warp->block->executor().shared_version;
  PlaceHold hold;
  if (space == Space::kGlobal && kind == AccessKind::kLoad &&
      warp->block->launch().place_locks != nullptr) {
    if (AreRecordedReads(warp, mask, bytes, race, access)) return;
    HoldOffsets(warp, mask, base_address, access, &hold);
  }
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const uint64_t offset = access.offset[lane];
    view->thread = warp->index * kLanes + static_cast<uint32_t>(lane);
    const Accessors who = (repeated >> lane & 1) != 0 ? Accessors::kWarp : Accessors::kThread;
    for (uint32_t done = 0; done < bytes; done += 4) {
      const uint64_t word = (offset + done) / 4;
      const RaceWords at = {race.words + 2 * word,
                            race.of_bytes == nullptr ? nullptr : race.of_bytes + 8 * word};
      const uint32_t part = WordBytes(offset + done, bytes);
      const RaceConflict conflict = kind == AccessKind::kLoad    ? CheckRead(at, part, *view, who)
                                    : kind == AccessKind::kStore ? CheckWrite(at, part, *view)
                                                                 : CheckAtomic(at, part, *view);
      if (conflict.earlier == 0) continue;
      if (kind == AccessKind::kStore && conflict.earlier_writes &&
          IsSameValue(*view, conflict, lane, done, bytes, access))
        continue;
      ReportRace(warp, op, lane, space, base_address + offset + done, bytes, kind, conflict);
    }
  }
}

RaceWords SharedRace(Block* block, uint32_t bytes) {
  return {block->shared_race(), block->shared_byte_race(bytes < 4)};
}

// Where the lanes lie to each other in ever new ways, learning them is not worth its time.
bool LearnsAgain(Warp* warp, const Op& op) {
  constexpr uint32_t kChangesMax = 8;
  constexpr uint32_t kRetry = 64;
  LanePattern* const pattern = warp->block->executor().patterns[OpIndex(warp, op)].get();
  return pattern == nullptr || pattern->changes < kChangesMax || pattern->unmet++ % kRetry == 0;
}

// What follows from how the lanes lie to each other.
const LanePattern& PatternOf(Warp* warp, const Op& op, uint32_t mask, uint32_t bytes, bool shared,
                             const WarpAccess& access) {
  std::unique_ptr<LanePattern>& pattern = warp->block->executor().patterns[OpIndex(warp, op)];
  if (pattern == nullptr) pattern = std::make_unique<LanePattern>();
  if (pattern->shared != shared || pattern->bytes != bytes || !IsPattern(*pattern, mask, access))
    LearnPattern(mask, bytes, shared, access, pattern.get());
  return *pattern;
}

}  // namespace

const AllocationSlot* FindSlot(Warp* warp, const Op& op, uint64_t address) {
  Block& block = *warp->block;
  AllocationSlot& slot = block.executor().slots[OpIndex(warp, op)];
  if (address - slot.address < slot.bytes) return &slot;
  const Allocation* const allocation = block.launch().memory->Find(address);
  if (allocation == nullptr || allocation->freed) return nullptr;
  slot = {allocation->address,
          allocation->bytes,
          allocation->host,
          allocation->initialized,
          allocation->race,
          allocation->byte_race,
          allocation->role == Role::kPlain,
          allocation->role != Role::kPlain || !block.launch().races_in_global};
  return &slot;
}

namespace {

void CountGlobal(Warp* warp, uint32_t mask, uint32_t bytes, AccessKind kind,
                 const WarpAccess& access) {
  Counters& counters = warp->block->executor().counters;
  const auto lanes = static_cast<uint64_t>(std::popcount(mask));
  if (kind == AccessKind::kAtomic) {
    counters.atomic_operations += lanes;
  } else {
    (Writes(kind) ? counters.global_store_bytes : counters.global_load_bytes) += lanes * bytes;
  }
  counters.global_sectors += CountSectors(mask, bytes, access);
  counters.global_sectors_least +=
      access.pattern == Pattern::kBroadcast ? 1 : (lanes * bytes + 31) / 32;
}

std::string Where(const Allocation& allocation, uint64_t address) {
  return absl::StrCat("offset ", address - allocation.address, " of ", allocation.name,
                      ", which has ", allocation.bytes, " bytes");
}

// Why a global address is out of bounds.
std::string NearestText(const DeviceMemory& memory, uint64_t address) {
  if (address < 4096) return "a null pointer, or one with a small offset";
  const Allocation* const near = memory.Nearest(address);
  if (near == nullptr) return "no memory is allocated";
  if (address >= near->address) {
    return absl::StrCat(address - near->address - near->bytes, " bytes after the end of ",
                        near->name, ", which has ", near->bytes);
  }
  return absl::StrCat(near->address - address, " bytes before the start of ", near->name);
}

struct LanePlace {
  std::byte* host = nullptr;
  uint64_t* initialized = nullptr;  // bit of the first byte of the space or allocation
  RaceWords race;                   // nullptr: not looked for
  uint64_t offset = 0;
  std::string_view name;
};

// Finds a global address; false when a fault was reported.
bool PlaceGlobal(Warp* warp, const Op& op, int lane, uint64_t address, uint32_t bytes,
                 AccessKind kind, LanePlace* place) {
  const DeviceMemory& memory = *warp->block->launch().memory;
  const Allocation* const allocation = memory.Find(address);
  const auto fault = [&](FaultKind what, std::string text) {
    ReportMemoryFault(warp, op, lane, what, Space::kGlobal, address, bytes, std::move(text));
    return false;
  };
  if (allocation == nullptr) {
    return fault(FaultKind::kOutOfBounds,
                 absl::StrCat(Writes(kind) ? "write" : "read", " of ", bytes, " bytes at 0x",
                              absl::Hex(address), ": ", NearestText(memory, address)));
  }
  if (allocation->freed) {
    return fault(FaultKind::kUseAfterFree,
                 absl::StrCat(Writes(kind) ? "write" : "read", " of ", bytes, " bytes at ",
                              Where(*allocation, address), " and was freed"));
  }
  if (bytes > allocation->bytes - (address - allocation->address)) {
    return fault(FaultKind::kOutOfBounds,
                 absl::StrCat(Writes(kind) ? "write" : "read", " of ", bytes, " bytes at ",
                              Where(*allocation, address)));
  }
  if (Writes(kind) && allocation->role != Role::kPlain) {
    return fault(
        FaultKind::kInputWritten,
        absl::StrCat("write of ", bytes, " bytes at ", Where(*allocation, address), " and is ",
                     allocation->role == Role::kInput ? "an input" : "constant"));
  }
  const bool races = allocation->role == Role::kPlain && warp->block->launch().races_in_global;
  *place = {allocation->host, allocation->initialized,
            races ? RaceWords{allocation->race, allocation->byte_race} : RaceWords(),
            address - allocation->address, allocation->name};
  return true;
}

bool PlaceInBlock(Warp* warp, const Op& op, int lane, Space space, uint64_t address, uint32_t bytes,
                  AccessKind kind, LanePlace* place) {
  Block& block = *warp->block;
  const uint32_t thread = warp->index * kLanes + static_cast<uint32_t>(lane);
  const bool shared = space == Space::kShared;
  const uint64_t base = shared ? kSharedBase : kLocalBase;
  const uint64_t size = shared ? block.shared_bytes() : block.local_bytes();
  if (address < base || address - base > size || bytes > size - (address - base)) {
    ReportMemoryFault(warp, op, lane, FaultKind::kOutOfBounds, space, address, bytes,
                      absl::StrCat(Writes(kind) ? "write" : "read", " of ", bytes,
                                   " bytes at offset ", static_cast<int64_t>(address - base),
                                   " of ", shared ? "the block's shared" : "the thread's local",
                                   " memory, which has ", size, " bytes"));
    return false;
  }
  const uint64_t offset = address - base;
  if (shared) {
    const bool races = block.launch().options.check_races;
    *place = {block.shared(), block.shared_initialized(),
              races ? SharedRace(&block, bytes) : RaceWords(), offset, "shared memory"};
    for (const SharedVariable& variable : block.program().shared_variables) {
      if (offset - variable.offset < variable.bytes) place->name = variable.name;
    }
  } else {
    *place = {block.local(thread), block.local_initialized(thread), RaceWords(), offset,
              "local memory"};
  }
  return true;
}

std::byte* PrepareParam(Warp* warp, const Op& op, int lane, uint64_t address, uint32_t bytes,
                        AccessKind kind) {
  const std::span<const std::byte> arguments = warp->block->launch().arguments;
  if (Writes(kind) || address > arguments.size() || bytes > arguments.size() - address) {
    ReportMemoryFault(
        warp, op, lane, FaultKind::kOutOfBounds, Space::kParam, address, bytes,
        absl::StrCat(Writes(kind) ? "write" : "read", " of ", bytes, " bytes at offset ", address,
                     " of the kernel's parameters, which have ", arguments.size(),
                     " and are read only"));
    return nullptr;
  }
  return const_cast<std::byte*>(arguments.data()) + address;
}

void RecordLaneRaces(Warp* warp, const Op& op, int lane, Space space, uint64_t address,
                     uint32_t bytes, AccessKind kind, const void* value, const LanePlace& place) {
  WarpAccess access;
  access.base = place.host;
  std::fill(access.offset, access.offset + kLanes, place.offset);
  std::byte repeated[kLanes * 16];
  if (value != nullptr) {
    for (size_t i = 0; i < kLanes; ++i) std::memcpy(repeated + i * bytes, value, bytes);
    access.values = repeated;
  }
  RecordRaces(warp, op, 1u << lane, 0, bytes, kind, space, place.race, address - place.offset,
              access);
}

void ReportUninitialized(Warp* warp, const Op& op, int lane, Space space, uint64_t address,
                         uint32_t bytes, LanePlace* place) {
  if (space == Space::kShared && AnyBitSet(warp->block->shared_pending(), place->offset, bytes)) {
    place->race = RaceWords();  // the same mistake
    if (CountKnownFault(warp, op, FaultKind::kMissingAsyncWait)) return;
    ReportMemoryFault(
        warp, op, lane, FaultKind::kMissingAsyncWait, space, address, bytes,
        absl::StrCat("read of ", bytes, " bytes at offset ", place->offset, " of ",
                     std::string(place->name),
                     ", which an asynchronous copy fills that nobody has waited for"));
    return;
  }
  if (CountKnownFault(warp, op, FaultKind::kUninitializedRead)) return;
  ReportMemoryFault(warp, op, lane, FaultKind::kUninitializedRead, space, address, bytes,
                    absl::StrCat("read of ", bytes, " bytes at offset ", place->offset, " of ",
                                 std::string(place->name), ", which nobody has written"));
}

}  // namespace

void HoldPlaces(Warp* warp, Space space, uint32_t mask, const uint64_t* addresses,
                PlaceHold* hold) {
  PlaceLocks* const locks = warp->block->launch().place_locks.get();
  if (locks == nullptr || (space != Space::kGlobal && space != Space::kGeneric)) return;
  PlaceSet places;
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1)
    places.Add(addresses[std::countr_zero(rest)]);
  hold->Take(locks, places);
}

void ComputeAddresses(const Warp* warp, const Op& op, uint64_t* addresses) {
  const uint64_t displacement = op.data;
  if (op.a == kNoRegister) {
    std::fill(addresses, addresses + kLanes, displacement);
  } else if ((op.extra & kNarrowAddress) != 0) {
    const uint32_t* const base = Lanes<uint32_t>(warp, op.a);
    const auto narrow = static_cast<uint32_t>(displacement);
    for (int lane = 0; lane < kLanes; ++lane) addresses[lane] = base[lane] + narrow;
  } else {
    const uint64_t* const base = Lanes<uint64_t>(warp, op.a);
    for (int lane = 0; lane < kLanes; ++lane) addresses[lane] = base[lane] + displacement;
  }
}

Space SplitGeneric(uint64_t* address) {
  const auto in = [&](uint64_t window) { return *address - window < kWindowBytes; };
  if (in(kSharedWindow)) {
    *address -= kSharedWindow;
    return Space::kShared;
  }
  if (in(kLocalWindow)) {
    *address -= kLocalWindow;
    return Space::kLocal;
  }
  if (in(kParamWindow)) {
    *address -= kParamWindow;
    return Space::kParam;
  }
  return Space::kGlobal;
}

bool PrepareGlobal(Warp* warp, const Op& op, uint32_t mask, const uint64_t* addresses,
                   uint32_t bytes, AccessKind kind, WarpAccess* access) {
  const AllocationSlot* const slot = FindSlot(warp, op, addresses[std::countr_zero(mask)]);
  if (slot == nullptr || slot->bytes < bytes || (Writes(kind) && !slot->writable)) return false;
  if (!SortLanes(mask, addresses, slot->address, slot->bytes - bytes, bytes, access)) return false;
  access->base = slot->host;
  if (Reads(kind) && !AllInitialized(slot->initialized, mask, bytes, *access)) return false;
  CountGlobal(warp, mask, bytes, kind, *access);
  if (!slot->skip_race) {
    if (Writes(kind)) HoldOffsets(warp, mask, slot->address, *access, &access->hold);
    RecordRaces(warp, op, mask, 0, bytes, kind, Space::kGlobal, {slot->race, slot->byte_race},
                slot->address, *access);
  }
  if (Writes(kind)) MarkInitialized(slot->initialized, mask, bytes, *access);
  if (LearnsAgain(warp, op)) PatternOf(warp, op, mask, bytes, false, *access);
  return true;
}

bool PrepareShared(Warp* warp, const Op& op, uint32_t mask, const uint64_t* addresses,
                   uint32_t bytes, AccessKind kind, WarpAccess* access) {
  Block& block = *warp->block;
  if (block.shared_bytes() < bytes) return false;
  if (!SortLanes(mask, addresses, kSharedBase, block.shared_bytes() - bytes, bytes, access))
    return false;
  access->base = block.shared();
  if (Reads(kind) && !AllInitialized(block.shared_initialized(), mask, bytes, *access))
    return false;
  Counters& counters = block.executor().counters;
  const auto lanes = static_cast<uint64_t>(std::popcount(mask));
  if (kind == AccessKind::kAtomic) {
    counters.atomic_operations += lanes;
  } else {
    (Writes(kind) ? counters.shared_store_bytes : counters.shared_load_bytes) += lanes * bytes;
  }
  ++counters.shared_accesses;
  const LanePattern& pattern = PatternOf(warp, op, mask, bytes, true, *access);
  counters.shared_bank_conflicts += pattern.conflicts;
  if (block.launch().options.check_races) {
    // Lanes of a warp that read a place together need one look.
    const bool together = kind == AccessKind::kLoad;
    RecordRaces(warp, op, together ? pattern.first : mask, together ? pattern.repeated : 0, bytes,
                kind, Space::kShared, SharedRace(&block, bytes), kSharedBase, *access);
  }
  if (Writes(kind)) MarkInitialized(block.shared_initialized(), mask, bytes, *access);
  return true;
}

std::byte* PrepareLane(Warp* warp, const Op& op, int lane, Space space, uint64_t address,
                       uint32_t bytes, AccessKind kind, const void* value) {
  if (space == Space::kGeneric) space = SplitGeneric(&address);
  if (space == Space::kConst) space = Space::kGlobal;
  if ((address & (bytes - 1)) != 0) {
    ReportMemoryFault(warp, op, lane, FaultKind::kMisaligned, space, address, bytes,
                      absl::StrCat(Writes(kind) ? "write" : "read", " of ", bytes, " bytes at ",
                                   std::string(SpaceName(space)), " address 0x", absl::Hex(address),
                                   ", which is no multiple of ", bytes));
    return nullptr;
  }
  if (space == Space::kParam) return PrepareParam(warp, op, lane, address, bytes, kind);
  LanePlace place;
  const bool found = space == Space::kGlobal
                         ? PlaceGlobal(warp, op, lane, address, bytes, kind, &place)
                         : PlaceInBlock(warp, op, lane, space, address, bytes, kind, &place);
  if (!found) return nullptr;
  if (Reads(kind) && !IsInitialized(place.initialized, place.offset, bytes)) {
    ReportUninitialized(warp, op, lane, space, address, bytes, &place);
  }
  if (place.race.words != nullptr)
    RecordLaneRaces(warp, op, lane, space, address, bytes, kind, value, place);
  if (Writes(kind)) SetBits(place.initialized, place.offset, bytes);
  Counters& counters = warp->block->executor().counters;
  if (kind == AccessKind::kAtomic) {
    ++counters.atomic_operations;
  } else if (space == Space::kLocal) {
    counters.local_bytes += bytes;
  } else if (space == Space::kGlobal) {
    (Writes(kind) ? counters.global_store_bytes : counters.global_load_bytes) += bytes;
    ++counters.global_sectors;
    ++counters.global_sectors_least;
  } else {
    (Writes(kind) ? counters.shared_store_bytes : counters.shared_load_bytes) += bytes;
  }
  return place.host + place.offset;
}

void RecordSharedWrite(Warp* warp, const Op& op, int lane, uint64_t address, uint32_t bytes,
                       const void* value) {
  Block& block = *warp->block;
  ++block.executor().shared_version;
  if (!block.launch().options.check_races) return;
  const LanePlace place{block.shared(), block.shared_initialized(), SharedRace(&block, bytes),
                        address - kSharedBase, ""};
  RecordLaneRaces(warp, op, lane, Space::kShared, address, bytes, AccessKind::kStore, value, place);
}

bool LoadLane(Warp* warp, const Op& op, int lane, Space space, uint64_t address, uint32_t bytes,
              void* value) {
  const std::byte* const host =
      PrepareLane(warp, op, lane, space, address, bytes, AccessKind::kLoad, nullptr);
  if (host == nullptr) return false;
  std::memcpy(value, host, bytes);
  return true;
}

bool StoreLane(Warp* warp, const Op& op, int lane, Space space, uint64_t address, uint32_t bytes,
               const void* value) {
  PlaceHold hold;
  HoldPlaces(warp, space, 1, &address, &hold);
  std::byte* const host =
      PrepareLane(warp, op, lane, space, address, bytes, AccessKind::kStore, value);
  if (host == nullptr) return false;
  std::memcpy(host, value, bytes);
  return true;
}

}  // namespace assay::emulator
