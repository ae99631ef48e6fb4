// The checks of race.h for many words in a row at once, where all of them pass.
//
// `words` are those of a row of 4-byte places, `owner` says who accesses each: a lane, and
// LanePattern::kSeveral beside it when several read it. Lanes are of the warp of `view`.
#ifndef ASSAY_EMULATOR_MEMORY_RACE_RUN_H_
#define ASSAY_EMULATOR_MEMORY_RACE_RUN_H_

#include <immintrin.h>

#include <cstdint>

#include "emulator/memory/race.h"

namespace assay::emulator {

enum class RunOrder : uint8_t {
  kUnsure,    // ask word by word; what was recorded is what that records too
  kRecorded,  // in order
  kSettled,   // and any warp of the block that reads it leaves the words as they are
};

namespace race_internal {

inline uint64_t OwnerStamp(const RaceView& view, uint8_t owner) {
  constexpr uint64_t kToWarp =
      PackStamp({.kind = Accessors::kWarp}) - PackStamp({.kind = Accessors::kThread});
  static_assert(kToWarp == uint64_t{1} << 34);
  return view.own + (uint64_t{owner & 31u} << 20) + (uint64_t{owner & 32u} << 29);
}

struct RunLook {
  bool writer_late = false;
  bool reader_late = false;
  bool summed = false;  // all readers are `view.summary`
};

// Of shared memory, where clocks alone say how old a stamp is.
inline RunLook LookAtRun(const uint64_t* words, uint32_t count, const RaceView& view) {
  const auto all = [](uint64_t value) { return _mm256_set1_epi64x(static_cast<int64_t>(value)); };
  const __m256i clock = all(kClockMax);
  const __m256i least = all(view.known_least);
  const __m256i summary = all(view.summary);
  __m256i late = _mm256_setzero_si256();
  __m256i differs = late;
  uint32_t i = 0;
  for (; i + 2 <= count; i += 2) {
    const __m256i two = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(words + 2 * size_t{i}));
    late = _mm256_or_si256(late, _mm256_sub_epi64(least, _mm256_and_si256(two, clock)));
    differs = _mm256_or_si256(differs, _mm256_xor_si256(two, summary));
  }
  const int signs = _mm256_movemask_pd(_mm256_castsi256_pd(late));
  const __m256i readers = _mm256_set_epi64x(-1, 0, -1, 0);
  RunLook look = {(signs & 5) != 0, (signs & 10) != 0, _mm256_testz_si256(differs, readers) != 0};
  if (i < count) {
    const uint64_t writer = words[2 * size_t{i}];
    const uint64_t reader = words[2 * size_t{i} + 1];
    look.writer_late = look.writer_late || (writer & kClockMax) > view.known_least;
    look.reader_late = look.reader_late || (reader & kClockMax) > view.known_least;
    look.summed = look.summed && reader == view.summary;
  }
  return look;
}

// A reader of another warp, which a level view does not know of when it is not old.
inline bool IsForeignReader(uint64_t word, const RaceView& view) {
  return (word >> 34 & 3) != static_cast<uint64_t>(Accessors::kBlock) &&
         (word >> 25 & 31) != view.warp;
}

}  // namespace race_internal

inline RunOrder ReadSharedRun(uint64_t* words, uint32_t count, const uint8_t* owner,
                              const RaceView& view) {
  using namespace race_internal;
  const RunLook look = LookAtRun(words, count, view);
  if (!look.writer_late && !look.reader_late) {
    for (uint32_t i = 0; i < count; ++i) words[2 * size_t{i} + 1] = OwnerStamp(view, owner[i]);
    return RunOrder::kRecorded;
  }
  if (view.uncertain) return RunOrder::kUnsure;
  if (!look.writer_late && look.summed) return RunOrder::kSettled;
  bool summed = !look.writer_late;
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t own = OwnerStamp(view, owner[i]);
    const uint64_t writer = words[2 * size_t{i}];
    // What a lane wrote itself it may read, when it alone does.
    if ((writer & kClockMax) > view.known_least && (writer != own || owner[i] > 31))
      return RunOrder::kUnsure;
    uint64_t& reader = words[2 * size_t{i} + 1];
    if ((reader & kClockMax) <= view.known_least) {
      reader = own;
    } else if (reader != own && reader != view.summary) {
      if (!view.level || !IsForeignReader(reader, view)) return RunOrder::kUnsure;
      reader = view.summary;
    }
    summed = summed && reader == view.summary;
  }
  return summed ? RunOrder::kSettled : RunOrder::kRecorded;
}

// False: unsure. No place has several owners.
inline bool WriteSharedRun(uint64_t* words, uint32_t count, const uint8_t* owner,
                           const RaceView& view) {
  using namespace race_internal;
  const RunLook look = LookAtRun(words, count, view);
  const bool certain = !look.writer_late && !look.reader_late;
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t own = OwnerStamp(view, owner[i]);
    uint64_t& writer = words[2 * size_t{i}];
    uint64_t& reader = words[2 * size_t{i} + 1];
    if (!certain && (((writer & kClockMax) > view.known_least && writer != own) ||
                     ((reader & kClockMax) > view.known_least && reader != own)))
      return false;
    reader = 0;
    writer = own;
  }
  return true;
}

// The same for global memory. Where several host threads run the launch, the caller holds the
// places (place_locks.h), but for IsRecordedGlobalRun.
//
// Whether reads race with nothing and leave nothing to record.
inline bool IsRecordedGlobalRun(const uint64_t* words, uint32_t count, const uint8_t* owner,
                                const RaceView& view) {
  using namespace race_internal;
  for (uint32_t i = 0; i < count; ++i) {
    if (!IsRecordedRead(words + 2 * size_t{i}, OwnerStamp(view, owner[i]), owner[i] > 31, view))
      return false;
  }
  return true;
}

namespace race_internal {

// Nobody else has been at the place since what the view takes for old.
inline bool MayWrite(uint64_t writer, uint64_t reader, uint64_t own, const RaceView& view) {
  return (writer == own || IsOld(writer, view)) && (reader == own || IsOld(reader, view));
}

}  // namespace race_internal

// Whether WriteGlobalRun will pass, which may have recorded a part where it does not.
inline bool MayWriteGlobalRun(const uint64_t* words, uint32_t count, const uint8_t* owner,
                              const RaceView& view) {
  using namespace race_internal;
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t own = OwnerStamp(view, owner[i]);
    const uint64_t writer = Load(&words[2 * size_t{i}]);
    const uint64_t reader = Load(&words[2 * size_t{i} + 1]);
    if (!MayWrite(writer, reader, own, view)) return false;
  }
  return true;
}

inline bool ReadGlobalRun(uint64_t* words, uint32_t count, const uint8_t* owner,
                          const RaceView& view) {
  using namespace race_internal;
  const uint64_t many = ManyReaders(view);
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t own = OwnerStamp(view, owner[i]);
    const uint64_t writer = Load(&words[2 * size_t{i}]);
    if (!IsOld(writer, view) && (writer != own || owner[i] > 31)) return false;
    const uint64_t reader = Load(&words[2 * size_t{i} + 1]);
    if (reader == own || (reader == many && !view.uncertain)) continue;
    if (!IsOld(reader, view)) return false;
    Store(&words[2 * size_t{i} + 1], own);
  }
  return true;
}

inline bool WriteGlobalRun(uint64_t* words, uint32_t count, const uint8_t* owner,
                           const RaceView& view) {
  using namespace race_internal;
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t own = OwnerStamp(view, owner[i]);
    const uint64_t writer = Load(&words[2 * size_t{i}]);
    const uint64_t reader = Load(&words[2 * size_t{i} + 1]);
    if (!MayWrite(writer, reader, own, view)) return false;
    if (reader != 0) Store(&words[2 * size_t{i} + 1], 0);
    Store(&words[2 * size_t{i}], own);
  }
  return true;
}

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_MEMORY_RACE_RUN_H_
