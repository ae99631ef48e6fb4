// Conversion between float and the 16-bit formats, without branches so that loops vectorise.
#ifndef ASSAY_KERNELS_HALF_H_
#define ASSAY_KERNELS_HALF_H_

#include <bit>
#include <cstdint>

namespace assay {

// binary16, round to nearest even; overflow gives infinity; subnormals are kept.
inline uint16_t FloatToF16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  // Exponent rebased from 127 to 15; the carry of the rounding runs into the exponent as it should.
  const uint32_t normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  // Adding 0.5 puts the unit of the last place at 2^-24, that of a subnormal result.
  const uint32_t subnormal =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  uint32_t out = magnitude < 0x38800000u ? subnormal : normal;
  out = magnitude >= 0x477ff000u ? 0x7c00u : out;
  out = magnitude > 0x7f800000u ? 0x7e00u : out;
  return static_cast<uint16_t>(sign | out);
}

inline float F16ToFloat(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t magnitude = half & 0x7fffu;
  const uint32_t normal = (magnitude << 13) + 0x38000000u;
  const uint32_t special = (magnitude << 13) | 0x7f800000u;
  const uint32_t subnormal =
      std::bit_cast<uint32_t>(static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f);
  uint32_t out = magnitude < 0x0400u ? subnormal : normal;
  out = magnitude >= 0x7c00u ? special : out;
  return std::bit_cast<float>(sign | out);
}

// bfloat16, round to nearest even.
inline uint16_t FloatToBF16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const uint32_t nan = (bits >> 16) | 0x40u;
  return static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

inline float BF16ToFloat(uint16_t half) {
  return std::bit_cast<float>(static_cast<uint32_t>(half) << 16);
}

}  // namespace assay

#endif  // ASSAY_KERNELS_HALF_H_
