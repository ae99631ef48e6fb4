// Race detection: two 64-bit words for every 4 bytes of memory say who wrote last and who has read
// since. Where smaller values are accessed, the four bytes have two words each of their own, until
// all of them are old or written as one.
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
  kBlock,  // several warps; the clock is that of the last barrier of the whole block. With
           // kManyBlocks: several blocks
};

// A race word, unpacked.
struct RaceStamp {
  uint32_t clock = 0;
  uint32_t thread = 0;  // in the block
  Accessors kind = Accessors::kNone;
  bool atomic = false;
  uint32_t block = 0;
  uint32_t generation = 0;

  uint32_t warp() const { return thread >> 5; }
};

constexpr uint64_t PackStamp(const RaceStamp& s) {
  return uint64_t{s.clock} | uint64_t{s.thread} << 20 | static_cast<uint64_t>(s.kind) << 34 |
         uint64_t{s.atomic} << 36 | uint64_t{s.block} << 38 | uint64_t{s.generation} << 60;
}
inline RaceStamp UnpackStamp(uint64_t word) {
  RaceStamp s;
  s.clock = word & kClockMax;
  s.thread = word >> 20 & 0x3ff;
  s.kind = static_cast<Accessors>(word >> 34 & 3);
  s.atomic = word >> 36 & 1;
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
  bool level = false;               // the others' are all `known_least`
  uint64_t own = 0;                 // the stamp of lane 0 alone
  uint64_t summary = 0;             // that of several warps of the block
};

// The race words of 4 bytes: writer and readers, and the same for each byte.
struct RaceWords {
  uint64_t* words = nullptr;
  uint64_t* of_bytes = nullptr;
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

inline uint64_t Own(const RaceView& view, bool atomic, Accessors who = Accessors::kThread) {
  return PackStamp({view.known[view.warp], view.thread, who, atomic, view.block, view.generation});
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

// The summary of readers of several blocks.
inline uint64_t ManyReaders(const RaceView& view) {
  return PackStamp(
      {.kind = Accessors::kBlock, .block = kManyBlocks, .generation = view.generation});
}

// The summary of earlier readers and one more, or several lanes.
inline uint64_t MergeReader(uint64_t word, const RaceView& view, Accessors who) {
  const RaceStamp s = UnpackStamp(word);
  if (s.block != view.block) {
    return ManyReaders(view);
  }
  if (who == Accessors::kThread && s.kind == Accessors::kThread && s.thread == view.thread)
    return Own(view, false);
  // What its own warp read before is let go.
  if (s.kind != Accessors::kBlock && s.warp() == view.warp)
    return Own(view, false, Accessors::kWarp);
  return view.summary;
}

inline bool IsAtomic(uint64_t word) { return word >> 36 & 1; }

// The word of a writer that says: look at the bytes. No clock is as late as its.
inline constexpr uint64_t kSplitBit = uint64_t{1} << 30;
inline uint64_t SplitMark(const RaceView& view) {
  return kSplitBit | kClockMax | uint64_t{view.generation} << 60;
}
inline bool IsSplit(uint64_t word, const RaceView& view) {
  return (word & kSplitBit) != 0 && word >> 60 == view.generation;
}

// From here on each byte is recorded by itself.
inline void Split(const RaceWords& at, const RaceView& view) {
  const uint64_t writer = Load(&at.words[0]);
  if (IsSplit(writer, view)) return;
  const uint64_t reader = Load(&at.words[1]);
  for (int i = 0; i < 8; i += 2) {
    Store(&at.of_bytes[i], writer);
    Store(&at.of_bytes[i + 1], reader);
  }
  std::atomic_ref(at.words[0]).store(SplitMark(view), std::memory_order_release);
}

// Whether the 4 bytes have words of their own that say more than that they are old.
inline bool StaysSplit(const RaceWords& at, const RaceView& view) {
  if (!IsSplit(std::atomic_ref(at.words[0]).load(std::memory_order_acquire), view)) return false;
  for (int i = 0; i < 8; ++i) {
    if (!IsOld(Load(&at.of_bytes[i]), view)) return true;
  }
  Store(&at.words[1], 0);
  Store(&at.words[0], 0);
  return false;
}

inline RaceConflict ReadPlace(uint64_t* words, const RaceView& view, Accessors who) {
  RaceConflict conflict;
  const uint64_t writer = Load(&words[0]);
  if (!IsAtomic(writer) && !IsOrdered(writer, view)) conflict = {writer, true};
  const uint64_t reader = Load(&words[1]);
  const bool alone = IsOld(reader, view) || (who == Accessors::kThread && IsOrdered(reader, view));
  const uint64_t now = alone ? Own(view, false, who) : MergeReader(reader, view, who);
  if (now != reader) Store(&words[1], now);
  return conflict;
}

// Whether a read of all 4 bytes of global memory, whose stamp would be `own`, races with nothing
// and leaves nothing to record. `several` lanes read it. Others may write meanwhile
// (place_locks.h): the readers are looked at first, so that whoever writes after the second look
// finds them as they were found here.
inline bool IsRecordedRead(const uint64_t* words, uint64_t own, bool several,
                           const RaceView& view) {
  const uint64_t reader =
      std::atomic_ref(*const_cast<uint64_t*>(&words[1])).load(std::memory_order_acquire);
  if (reader != own && (reader != ManyReaders(view) || view.uncertain)) return false;
  const uint64_t writer = Load(&words[0]);
  return IsOld(writer, view) || (writer == own && !several);
}

// Looks, and records nothing.
inline RaceConflict LookAtPlace(const uint64_t* words, const RaceView& view) {
  const uint64_t reader = Load(&words[1]);
  if (!IsOrdered(reader, view)) return {reader, false};
  const uint64_t writer = Load(&words[0]);
  if (!IsOrdered(writer, view)) return {writer, true};
  return {};
}

inline RaceConflict UpdatePlace(uint64_t* words, const RaceView& view) {
  RaceConflict conflict;
  const uint64_t writer = Load(&words[0]);
  if (!IsAtomic(writer) && !IsOrdered(writer, view)) conflict = {writer, true};
  Store(&words[0], Own(view, true));
  return conflict;
}

// Calls f with the words of each byte of `bytes`; the conflict with a reader is kept before one
// with a writer, which may have written the same.
template <typename F>
inline RaceConflict EachByte(const RaceWords& at, uint32_t bytes, F&& f) {
  RaceConflict found;
  for (int i = 0; i < 4; ++i) {
    if ((bytes >> i & 1) == 0) continue;
    const RaceConflict conflict = f(at.of_bytes + 2 * i);
    if (conflict.earlier != 0 && (found.earlier == 0 || !conflict.earlier_writes)) found = conflict;
  }
  return found;
}

}  // namespace race_internal

// `at` is of 4 bytes, `bytes` the mask of those that are accessed. Each records the access. `who`
// is kWarp when several lanes read the same.
inline RaceConflict CheckRead(const RaceWords& at, uint32_t bytes, const RaceView& view,
                              Accessors who = Accessors::kThread) {
  using namespace race_internal;
  if (bytes == 0xf && !StaysSplit(at, view)) return ReadPlace(at.words, view, who);
  Split(at, view);
  return EachByte(at, bytes, [&](uint64_t* words) { return ReadPlace(words, view, who); });
}

inline RaceConflict CheckWrite(const RaceWords& at, uint32_t bytes, const RaceView& view) {
  using namespace race_internal;
  if (bytes == 0xf) {
    const RaceConflict conflict =
        StaysSplit(at, view)
            ? EachByte(at, bytes, [&](uint64_t* words) { return LookAtPlace(words, view); })
            : LookAtPlace(at.words, view);
    // Whoever read before is ordered before this, or reported.
    Store(&at.words[1], 0);
    Store(&at.words[0], Own(view, false));
    return conflict;
  }
  Split(at, view);
  return EachByte(at, bytes, [&](uint64_t* words) {
    const RaceConflict conflict = LookAtPlace(words, view);
    Store(&words[1], 0);
    Store(&words[0], Own(view, false));
    return conflict;
  });
}

// An atomic access or a volatile store. It does not race with other such, nor with plain reads.
inline RaceConflict CheckAtomic(const RaceWords& at, uint32_t bytes, const RaceView& view) {
  using namespace race_internal;
  if (bytes == 0xf && !StaysSplit(at, view)) return UpdatePlace(at.words, view);
  Split(at, view);
  return EachByte(at, bytes, [&](uint64_t* words) { return UpdatePlace(words, view); });
}

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_MEMORY_RACE_H_
