// Rounding modes, exact rounding to formats narrower than double, and what PTX does to subnormal,
// out-of-range and NaN results.
#ifndef ASSAY_EMULATOR_OPS_ROUNDING_H_
#define ASSAY_EMULATOR_OPS_ROUNDING_H_

#include <algorithm>
#include <bit>
#include <cstdint>

#include "emulator/program/decoder.h"

namespace assay::emulator {

enum class Rounding : uint8_t { kNearest, kZero, kDown, kUp, kNearestAway };

// Takes .rn, .rz, .rm or .rp. False when there is none.
inline bool TakeRounding(Modifiers* modifiers, Rounding* rounding) {
  constexpr struct {
    const char* name;
    Rounding rounding;
  } kNames[] = {{"rn", Rounding::kNearest},
                {"rz", Rounding::kZero},
                {"rm", Rounding::kDown},
                {"rp", Rounding::kUp}};
  for (const auto& entry : kNames) {
    if (!modifiers->Take(entry.name)) continue;
    *rounding = entry.rounding;
    return true;
  }
  return false;
}

// The rounding-control bits of MXCSR.
inline uint32_t ControlBits(Rounding rounding) {
  switch (rounding) {
    case Rounding::kDown:
      return 0x2000;
    case Rounding::kUp:
      return 0x4000;
    case Rounding::kZero:
      return 0x6000;
    default:
      return 0;
  }
}

// Makes the processor round in a direction while it lives. Between its two ends values must come
// from memory and go to memory: that is what keeps the compiler from moving arithmetic across them.
class RoundingScope {
 public:
  explicit RoundingScope(uint32_t control_bits) {
    asm volatile("stmxcsr %0" : "=m"(saved_) : : "memory");
    const uint32_t changed = (saved_ & ~uint32_t{0x6000}) | control_bits;
    asm volatile("ldmxcsr %0" : : "m"(changed) : "memory");
  }
  ~RoundingScope() { asm volatile("ldmxcsr %0" : : "m"(saved_) : "memory"); }
  RoundingScope(const RoundingScope&) = delete;
  RoundingScope& operator=(const RoundingScope&) = delete;

 private:
  uint32_t saved_ = 0;
};

inline constexpr uint32_t kNan32 = 0x7fffffffu;
inline constexpr uint16_t kNan16 = 0x7fffu;

inline float FloatOf(uint32_t bits) { return std::bit_cast<float>(bits); }
inline uint32_t BitsOfFloat(float value) { return std::bit_cast<uint32_t>(value); }
inline double DoubleOf(uint64_t bits) { return std::bit_cast<double>(bits); }
inline uint64_t BitsOfDouble(double value) { return std::bit_cast<uint64_t>(value); }

// A subnormal becomes a zero of its sign.
inline uint32_t Flush32(uint32_t bits) {
  return (bits & 0x7f800000u) == 0 ? bits & 0x80000000u : bits;
}

// .sat: to [0, 1], and NaN and -0 to +0.
inline float Saturate(float value) {
  const float above = value > 0.0f ? value : 0.0f;
  return above < 1.0f ? above : 1.0f;
}
inline double Saturate(double value) {
  const double above = value > 0.0 ? value : 0.0;
  return above < 1.0 ? above : 1.0;
}

// A binary format: kFraction bits after the point, and the exponent of its least normal number.
struct F32Format {
  static constexpr int kFraction = 23;
  static constexpr int kExponentMin = -126;
  static constexpr uint64_t kInfinity = 0x7f800000;  // also the least encoding that is no number
};
struct F16Format {
  static constexpr int kFraction = 10;
  static constexpr int kExponentMin = -14;
  static constexpr uint64_t kInfinity = 0x7c00;
};
struct BF16Format {
  static constexpr int kFraction = 7;
  static constexpr int kExponentMin = -126;
  static constexpr uint64_t kInfinity = 0x7f80;
};
struct TF32Format {
  static constexpr int kFraction = 10;
  static constexpr int kExponentMin = -126;
  static constexpr uint64_t kInfinity = 0x7f800000 >> 13;
};
// Without infinities: results are always limited to the largest number.
struct E4M3Format {
  static constexpr int kFraction = 3;
  static constexpr int kExponentMin = -6;
  static constexpr uint64_t kInfinity = 0x7f;
};
struct E5M2Format {
  static constexpr int kFraction = 2;
  static constexpr int kExponentMin = -14;
  static constexpr uint64_t kInfinity = 0x7c;
};

// The encoding of |value| rounded once, from Format::kInfinity on when it is too large. `value` is
// no NaN. Without branches, so that loops over it become vector code.
template <typename Format, Rounding kRounding>
inline uint64_t RoundMagnitude(double value) {
  const uint64_t all = std::bit_cast<uint64_t>(value);
  const uint64_t bits = all & 0x7fff'ffff'ffff'ffffu;
  const int64_t exponent = static_cast<int64_t>(bits >> 52) - 1023;
  const uint64_t hidden = bits >> 52 != 0 ? uint64_t{1} << 52 : 0;
  const uint64_t significand = (bits & 0x000f'ffff'ffff'ffffu) | hidden;
  const int64_t over = std::max<int64_t>(exponent - Format::kExponentMin, 0);
  const int64_t under = std::max<int64_t>(Format::kExponentMin - exponent, 0);
  // One bit more than the format keeps, and whether anything is below it.
  const auto shift = static_cast<uint64_t>(std::min<int64_t>(51 - Format::kFraction + under, 62));
  const uint64_t kept = significand >> shift;
  const bool below = kept << shift != significand;
  const uint64_t half = kept & 1;
  const uint64_t odd = kept >> 1 & 1;
  uint64_t up = 0;
  if constexpr (kRounding == Rounding::kNearest) up = half & (below ? 1 : odd);
  if constexpr (kRounding == Rounding::kNearestAway) up = half;
  if constexpr (kRounding == Rounding::kUp) up = (below ? 1 : half) & ~(all >> 63);
  if constexpr (kRounding == Rounding::kDown) up = (below ? 1 : half) & all >> 63;
  return (kept >> 1) + up + (static_cast<uint64_t>(over) << Format::kFraction);
}

// What a number that is too large becomes.
template <typename Format, Rounding kRounding>
inline uint64_t LimitMagnitude(uint64_t magnitude, double value, bool finite) {
  constexpr uint64_t kInfinity = Format::kInfinity;
  const bool negative = (std::bit_cast<uint64_t>(value) >> 63) != 0;
  const bool infinite =
      (std::bit_cast<uint64_t>(value) & 0x7fff'ffff'ffff'ffffu) == 0x7ff0'0000'0000'0000u;
  bool limit = finite;
  if constexpr (kRounding == Rounding::kZero) limit = limit || !infinite;
  if constexpr (kRounding == Rounding::kUp) limit = limit || (!infinite && negative);
  if constexpr (kRounding == Rounding::kDown) limit = limit || (!infinite && !negative);
  return magnitude < kInfinity ? magnitude : (limit ? kInfinity - 1 : kInfinity);
}

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_OPS_ROUNDING_H_
