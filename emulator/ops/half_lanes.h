// The values of f16 and bf16 registers as arrays of float, and back.
//
// A packed register counts as twice the lanes: lane i has elements 2 i and 2 i + 1. All lanes are
// read, and only those of the mask written.
#ifndef ASSAY_EMULATOR_OPS_HALF_LANES_H_
#define ASSAY_EMULATOR_OPS_HALF_LANES_H_

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "emulator/execute/lanes.h"
#include "emulator/ops/rounding.h"

namespace assay::emulator {

inline constexpr int kHalvesMax = 2 * kLanes;

// A sequence of 16-bit numbers as they lie in a register.
struct HalfBits {
  alignas(32) uint16_t values[kHalvesMax];
};
struct HalfFloats {
  alignas(32) float values[kHalvesMax];
};

template <bool kPacked>
inline constexpr int kHalfCount = kPacked ? kHalvesMax : kLanes;

template <bool kPacked>
inline void ReadHalves(const Warp* warp, uint32_t offset, HalfBits* bits) {
  std::memcpy(bits->values, warp->registers + offset, 2 * kHalfCount<kPacked>);
}

template <bool kPacked>
inline void WriteHalves(const Warp* warp, uint32_t offset, uint32_t mask, const HalfBits& bits) {
  constexpr int kBytes = kPacked ? 4 : 2;
  std::byte* const to = warp->registers + offset;
  if (mask == kAllLanes) {
    std::memcpy(to, bits.values, kLanes * kBytes);
    return;
  }
  const auto* const from = reinterpret_cast<const std::byte*>(bits.values);
  EachLane(mask, [=](int i) { std::memcpy(to + i * kBytes, from + i * kBytes, kBytes); });
}

// The two formats: whole arrays to float, exactly, and float to them, to the nearest. NaN becomes
// the canonical one.
struct F16Lanes {
  using Format = F16Format;
  template <int kCount>
  static void Widen(const HalfBits& from, HalfFloats* to) {
    for (int i = 0; i < kCount; i += 8) {
      const __m128i eight = _mm_load_si128(reinterpret_cast<const __m128i*>(from.values + i));
      _mm256_store_ps(to->values + i, _mm256_cvtph_ps(eight));
    }
  }
  template <int kCount>
  static void Narrow(const HalfFloats& from, HalfBits* to) {
    for (int i = 0; i < kCount; i += 8) {
      const __m256 value = _mm256_load_ps(from.values + i);
      const __m256 is_nan = _mm256_cmp_ps(value, value, _CMP_UNORD_Q);
      const __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
      const __m256 clean = _mm256_blendv_ps(value, nan, is_nan);
      constexpr int kToNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
      _mm_store_si128(reinterpret_cast<__m128i*>(to->values + i),
                      _mm256_cvtps_ph(clean, kToNearest));
    }
  }
  static uint16_t Flush(uint16_t bits) { return (bits & 0x7c00) == 0 ? bits & 0x8000 : bits; }
  static bool IsNan(uint16_t bits) { return (bits & 0x7fff) > 0x7c00; }
};

struct BF16Lanes {
  using Format = BF16Format;
  template <int kCount>
  static void Widen(const HalfBits& from, HalfFloats* to) {
    for (int i = 0; i < kCount; ++i) to->values[i] = FloatOf(uint32_t{from.values[i]} << 16);
  }
  template <int kCount>
  static void Narrow(const HalfFloats& from, HalfBits* to) {
    for (int i = 0; i < kCount; ++i) {
      const uint32_t bits = BitsOfFloat(from.values[i]);
      const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
      const bool is_nan = (bits & 0x7fffffff) > 0x7f800000;
      to->values[i] = static_cast<uint16_t>(is_nan ? kNan16 : rounded);
    }
  }
  static uint16_t Flush(uint16_t bits) { return (bits & 0x7f80) == 0 ? bits & 0x8000 : bits; }
  static bool IsNan(uint16_t bits) { return (bits & 0x7fff) > 0x7f80; }
};

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_OPS_HALF_LANES_H_
