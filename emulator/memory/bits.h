// Ranges of bits in arrays of 64-bit words: the shadow that says which bytes hold something.
//
// Neighbouring bits may be set and read by several threads at once, so words are read and changed
// atomically.
#ifndef ASSAY_EMULATOR_MEMORY_BITS_H_
#define ASSAY_EMULATOR_MEMORY_BITS_H_

#include <atomic>
#include <cstdint>

namespace assay::emulator {

// `count` ones from bit `first` on; first + count <= 64.
inline uint64_t BitRange(unsigned first, unsigned count) {
  return (count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1) << first;
}

// Calls f(word index, mask) for every word that the range [first, first + count) touches, until it
// says false.
template <typename F>
inline bool EachWord(uint64_t first, uint64_t count, F&& f) {
  while (count > 0) {
    const unsigned bit = first % 64;
    const unsigned here = count < 64 - bit ? static_cast<unsigned>(count) : 64 - bit;
    if (!f(first / 64, BitRange(bit, here))) return false;
    first += here;
    count -= here;
  }
  return true;
}

inline uint64_t LoadBits(const uint64_t* word) {
  return std::atomic_ref(*const_cast<uint64_t*>(word)).load(std::memory_order_relaxed);
}
inline bool AllBitsSet(const uint64_t* words, uint64_t first, uint64_t count) {
  return EachWord(first, count, [&](uint64_t word, uint64_t mask) {
    return (LoadBits(words + word) & mask) == mask;
  });
}
inline bool AnyBitSet(const uint64_t* words, uint64_t first, uint64_t count) {
  return !EachWord(first, count, [&](uint64_t word, uint64_t mask) {
    return (LoadBits(words + word) & mask) == 0;
  });
}
inline void SetBits(uint64_t* words, uint64_t first, uint64_t count) {
  EachWord(first, count, [&](uint64_t word, uint64_t mask) {
    // Most stores hit bytes that were stored before; a look is cheaper than a locked instruction.
    if ((LoadBits(words + word) & mask) != mask)
      std::atomic_ref(words[word]).fetch_or(mask, std::memory_order_relaxed);
    return true;
  });
}
inline void ClearBits(uint64_t* words, uint64_t first, uint64_t count) {
  EachWord(first, count, [&](uint64_t word, uint64_t mask) {
    std::atomic_ref(words[word]).fetch_and(~mask, std::memory_order_relaxed);
    return true;
  });
}

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_MEMORY_BITS_H_
