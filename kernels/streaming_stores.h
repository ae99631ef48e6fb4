// Writes for tensors that the caches cannot hold: past them, so that no line is fetched only to be
// overwritten, and nothing else is driven out. The same bits as ordinary writes.
#ifndef ASSAY_KERNELS_STREAMING_STORES_H_
#define ASSAY_KERNELS_STREAMING_STORES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/cpu_caches.h"

namespace assay {

// Whether a tensor of so many bytes is better written past the caches.
inline bool ExceedsCaches(size_t bytes) { return bytes > LastLevelCacheBytes(); }

// After the last copy of a tensor, before anyone else may read it.
inline void EndStreaming() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

// A copy past the caches; `from` and `to` do not overlap. See EndStreaming.
inline void StreamCopy(std::span<const std::byte> from, std::byte* to) {
  size_t at = 0;
#if defined(__x86_64__)
  constexpr size_t kWord = sizeof(__m128i);
  constexpr size_t kLine = 4 * kWord;
  at = std::min(from.size(), (kWord - reinterpret_cast<uintptr_t>(to) % kWord) % kWord);
  std::memcpy(to, from.data(), at);
  for (; at + kLine <= from.size(); at += kLine) {
    const auto* source = reinterpret_cast<const __m128i*>(from.data() + at);
    auto* target = reinterpret_cast<__m128i*>(to + at);
    const __m128i words[] = {_mm_loadu_si128(source), _mm_loadu_si128(source + 1),
                             _mm_loadu_si128(source + 2), _mm_loadu_si128(source + 3)};
    for (size_t word = 0; word < 4; ++word) _mm_stream_si128(target + word, words[word]);
  }
#endif
  std::memcpy(to + at, from.data() + at, from.size() - at);
}

}  // namespace assay

#endif  // ASSAY_KERNELS_STREAMING_STORES_H_
