// The sum of two 16-bit numbers, rounded to the nearest, for atomics.
#ifndef ASSAY_EMULATOR_OPS_HALF_ADD_H_
#define ASSAY_EMULATOR_OPS_HALF_ADD_H_

#include <immintrin.h>

#include <bit>
#include <cstdint>

namespace assay::emulator {

// f32 has more than twice the digits of either format, so that rounding the sum twice rounds it
// once (Figueroa, "When is double rounding innocuous?", 1995).
inline uint16_t AddF16(uint16_t a, uint16_t b) {
  const float sum = _cvtsh_ss(a) + _cvtsh_ss(b);
  return sum != sum ? 0x7fff : _cvtss_sh(sum, _MM_FROUND_TO_NEAREST_INT);
}

inline uint16_t AddBF16(uint16_t a, uint16_t b) {
  const float sum =
      std::bit_cast<float>(uint32_t{a} << 16) + std::bit_cast<float>(uint32_t{b} << 16);
  if (sum != sum) return 0x7fff;
  const auto bits = std::bit_cast<uint32_t>(sum);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_OPS_HALF_ADD_H_
