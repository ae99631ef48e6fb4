// Race detection: two 64-bit words for every 4 bytes of memory say who wrote last and who has read
// since.
//
// Happens-before is tracked per warp: every warp has a clock, which steps at barriers, and knows
// how far it has seen the clocks of the other warps of its block (the epochs of FastTrack, Flanagan
// and Freund 2009, with a summary of constant size in place of a vector where many have read, as in
// HiRace). An access races with an earlier one of another thread that it does not know of, when one
// of them writes and not both are atomic. Where the summary cannot tell, nothing is reported.
#ifndef ASSAY_EMULATOR_MEMORY_RACE_H_
#define ASSAY_EMULATOR_MEMORY_RACE_H_

#include <atomic>
#include <cstdint>

namespace assay::emulator {

inline constexpr uint32_t kGenerationMax = 15;
inline constexpr uint32_t kClockMax = (1u << 20) - 1;
// Blocks with this number and higher are not told apart.
inline constexpr uint32_t kManyBlocks = (1u << 22) - 1;

enum class Accessors : uint8_t {
  kNone,
  kThread,
  kWarp,   // several lanes of one
  kBlock,  // several warps, with the bytes that two of them accessed; the clock is that of the last
           // barrier of the whole block. With kManyBlocks: several blocks
};

// A race word, unpacked.
struct RaceStamp {
  uint32_t clock = 0;
  uint32_t thread = 0;  // in the block
  uint32_t bytes = 0;   // mask of the four
  Accessors kind = Accessors::kNone;
  bool atomic = false;
  bool mixed = false;  // several threads, not all of which touched all of `bytes`
  uint32_t block = 0;
  uint32_t generation = 0;

  uint32_t warp() const { return thread >> 5; }
};

inline uint64_t PackStamp(const RaceStamp& s) {
  return uint64_t{s.clock} | uint64_t{s.thread} << 20 | uint64_t{s.bytes} << 30 |
         static_cast<uint64_t>(s.kind) << 34 | uint64_t{s.atomic} << 36 | uint64_t{s.mixed} << 37 |
         uint64_t{s.block} << 38 | uint64_t{s.generation} << 60;
}
inline RaceStamp UnpackStamp(uint64_t word) {
  RaceStamp s;
  s.clock = word & kClockMax;
  s.thread = word >> 20 & 0x3ff;
  s.bytes = word >> 30 & 0xf;
  s.kind = static_cast<Accessors>(word >> 34 & 3);
  s.atomic = word >> 36 & 1;
  s.mixed = word >> 37 & 1;
  s.block = word >> 38 & kManyBlocks;
  s.generation = word >> 60;
  return s;
}

// Who accesses now. One a warp; `thread` is set before each check.
struct RaceView {
  uint32_t thread = 0;
  uint32_t warp = 0;
  uint32_t block = 0;       // 0 for shared memory
  uint32_t generation = 0;  // 0 for shared memory
  uint32_t block_epoch =
      1;  // the clock that all warps of the block had after their last common barrier
  bool uncertain = false;           // parts of the block met since the last of them
  const uint32_t* known = nullptr;  // clocks of the block's warps, as far as this one has seen; its
                                    // own is the present one
  uint64_t known_least = 0;         // the least of `known`, its own less 1
};

// What an access conflicts with: the earlier one's word, 0: nothing.
struct RaceConflict {
  uint64_t earlier = 0;
  bool earlier_writes = false;
};

namespace race_internal {

inline uint64_t Load(const uint64_t* word) {
  return std::atomic_ref(*const_cast<uint64_t*>(word)).load(std::memory_order_relaxed);
}
inline void Store(uint64_t* word, uint64_t value) {
  std::atomic_ref(*word).store(value, std::memory_order_relaxed);
}

inline uint64_t Own(const RaceView& view, uint32_t bytes, bool atomic,
                    Accessors who = Accessors::kThread) {
  return PackStamp(
      {view.known[view.warp], view.thread, bytes, who, atomic, false, view.block, view.generation});
}

// Whether everybody in `word` certainly came before, by the cheapest look.
inline bool IsOld(uint64_t word, const RaceView& view) {
  if (word == 0 || word >> 60 != view.generation) return true;
  return (word >> 38 & kManyBlocks) == view.block && (word & kClockMax) <= view.known_least;
}

inline bool IsOrdered(uint64_t word, const RaceView& view) {
  if (IsOld(word, view)) return true;
  const RaceStamp s = UnpackStamp(word);
  if (s.block != view.block) return s.block == kManyBlocks && view.uncertain;
  switch (s.kind) {
    case Accessors::kNone:
      return true;
    case Accessors::kThread:
      if (s.thread == view.thread) return true;
      [[fallthrough]];
    case Accessors::kWarp:
      return s.warp() == view.warp ? s.clock < view.known[view.warp]
                                   : s.clock <= view.known[s.warp()];
    case Accessors::kBlock:
      return s.clock < view.block_epoch || view.uncertain;
  }
  return true;
}

// The summary of earlier readers and one more, or several lanes.
inline uint64_t MergeReader(uint64_t word, const RaceView& view, uint32_t bytes, Accessors who) {
  const RaceStamp s = UnpackStamp(word);
  if (s.block != view.block) {
    if (s.block == kManyBlocks && (s.bytes & bytes) == bytes) return word;
    return PackStamp({0, 0, s.bytes | bytes, Accessors::kBlock, false, s.mixed || s.bytes != bytes,
                      kManyBlocks, view.generation});
  }
  if (who == Accessors::kThread && s.kind == Accessors::kThread && s.thread == view.thread) {
    return Own(view, bytes | s.bytes, false);
  }
  if (s.kind == Accessors::kBlock) {
    return PackStamp({view.block_epoch, 0, s.bytes, Accessors::kBlock, false, false, view.block,
                      view.generation});
  }
  const uint32_t clock = view.known[view.warp];
  if (s.warp() == view.warp) {
    const uint32_t together =
        s.clock == clock ? s.bytes | bytes : bytes;  // what it read before is let go
    return PackStamp({clock, view.thread, together, Accessors::kWarp, false,
                      s.mixed || s.bytes != bytes, view.block, view.generation});
  }
  // Only what two warps have read, so that it is certain that one of them is not that of a later
  // writer.
  return PackStamp({view.block_epoch, 0, s.bytes & bytes, Accessors::kBlock, false, false,
                    view.block, view.generation});
}

// The writer of some of the 4 bytes, and of others that its warp has written since the last clock.
inline uint64_t MergeWriter(uint64_t word, const RaceView& view, uint32_t bytes) {
  const RaceStamp s = UnpackStamp(word);
  const bool same_step = word != 0 && s.generation == view.generation && s.block == view.block &&
                         !s.atomic && s.warp() == view.warp && s.clock == view.known[view.warp];
  if (!same_step || (s.bytes & ~bytes) == 0) return Own(view, bytes, false);
  if (s.kind == Accessors::kThread && s.thread == view.thread)
    return Own(view, bytes | s.bytes, false);
  return PackStamp({s.clock, view.thread, bytes | s.bytes, Accessors::kWarp, false, true,
                    view.block, view.generation});
}

inline bool Overlaps(uint64_t word, uint32_t bytes) { return (word >> 30 & 0xf & bytes) != 0; }
inline bool IsAtomic(uint64_t word) { return word >> 36 & 1; }
inline bool IsMixed(uint64_t word) { return word >> 37 & 1; }

// Whether it is not certain that a byte was accessed by another thread than that of `view`.
inline bool MayBeOwn(uint64_t word, const RaceView& view) {
  if (!IsMixed(word)) return false;
  const RaceStamp s = UnpackStamp(word);
  return s.block == kManyBlocks || (s.block == view.block && s.warp() == view.warp);
}

}  // namespace race_internal

// `words` are the two of the 4 bytes, `bytes` the mask of those that are accessed. Each records the
// access. `who` is kWarp when several lanes read the same.
inline RaceConflict CheckRead(uint64_t* words, uint32_t bytes, const RaceView& view,
                              Accessors who = Accessors::kThread) {
  using namespace race_internal;
  RaceConflict conflict;
  const uint64_t writer = Load(&words[0]);
  if (!IsOld(writer, view) && !IsAtomic(writer) && Overlaps(writer, bytes) &&
      !MayBeOwn(writer, view) && !IsOrdered(writer, view)) {
    conflict = {writer, true};
  }
  const uint64_t reader = Load(&words[1]);
  const bool alone = IsOld(reader, view) || (who == Accessors::kThread && IsOrdered(reader, view));
  const uint64_t now = alone ? Own(view, bytes, false, who) : MergeReader(reader, view, bytes, who);
  if (now != reader) Store(&words[1], now);
  return conflict;
}

inline RaceConflict CheckWrite(uint64_t* words, uint32_t bytes, const RaceView& view) {
  using namespace race_internal;
  RaceConflict conflict;
  const uint64_t writer = Load(&words[0]);
  if (!IsOld(writer, view) && Overlaps(writer, bytes) && !MayBeOwn(writer, view) &&
      !IsOrdered(writer, view))
    conflict = {writer, true};
  const uint64_t reader = Load(&words[1]);
  if (!IsOld(reader, view) && Overlaps(reader, bytes) && !MayBeOwn(reader, view) &&
      !IsOrdered(reader, view)) {
    conflict = {reader, false};
  }
  Store(&words[0], bytes == 0xf ? Own(view, bytes, false) : MergeWriter(writer, view, bytes));
  return conflict;
}

// An atomic access or a volatile store. It does not race with other such, nor with plain reads.
inline RaceConflict CheckAtomic(uint64_t* words, uint32_t bytes, const RaceView& view) {
  using namespace race_internal;
  RaceConflict conflict;
  const uint64_t writer = Load(&words[0]);
  if (!IsOld(writer, view) && !IsAtomic(writer) && Overlaps(writer, bytes) &&
      !MayBeOwn(writer, view) && !IsOrdered(writer, view)) {
    conflict = {writer, true};
  }
  Store(&words[0], Own(view, bytes, true));
  return conflict;
}

// The same for all 32 lanes of a warp that read, or write, as many words of shared memory in a row,
// from `words` on. False: not all of them are certainly in order, and nothing was recorded; then
// each lane's own check says which. Stamps of shared memory have neither block nor generation, so
// that their clocks alone say how old they are.
inline bool ReadRowInOrder(uint64_t* words, const RaceView& view) {
  using namespace race_internal;
  // What two warps of the block leave; in a row that many warps read it is there already.
  const uint64_t summary =
      PackStamp({view.block_epoch, 0, 0xf, Accessors::kBlock, false, false, 0, 0});
  const uint64_t least = view.known_least;
  uint64_t late = 0;
  uint64_t other_reader = 0;
  uint64_t late_reader = 0;
  for (int i = 0; i < 32; ++i) {
    late |= least - (words[2 * i] & kClockMax);
    other_reader |= words[2 * i + 1] ^ summary;
    late_reader |= least - (words[2 * i + 1] & kClockMax);
  }
  if (late >> 63 != 0) return false;
  if (other_reader == 0) return true;
  if (late_reader >> 63 != 0) return false;
  const uint64_t own = PackStamp(
      {view.known[view.warp], view.warp * 32, 0xf, Accessors::kThread, false, false, 0, 0});
  for (uint64_t i = 0; i < 32; ++i) words[2 * i + 1] = own + (i << 20);
  return true;
}

inline bool WriteRowInOrder(uint64_t* words, const RaceView& view) {
  using namespace race_internal;
  const uint64_t least = view.known_least;
  uint64_t late = 0;
  for (int i = 0; i < 64; ++i) late |= least - (words[i] & kClockMax);
  if (late >> 63 != 0) return false;
  const uint64_t own = PackStamp(
      {view.known[view.warp], view.warp * 32, 0xf, Accessors::kThread, false, false, 0, 0});
  for (uint64_t i = 0; i < 32; ++i) words[2 * i] = own + (i << 20);
  return true;
}

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_MEMORY_RACE_H_
