#include "emulator/ops/convert_passes.h"

#include <bit>
#include <cmath>
#include <limits>

#include "emulator/ops/handlers.h"

namespace assay::emulator {
namespace {

template <typename Register>
void TakeAs(const Warp* warp, uint32_t offset, Type type, ConvertBuffer* buffer) {
  const Register* const from = Lanes<Register>(warp, offset);
  const int shift = 64 - 8 * TypeBytes(type);
  const bool is_signed = IsSigned(type);
  if (is_signed) {
    for (int i = 0; i < kLanes; ++i) {
      const auto top = static_cast<int64_t>(uint64_t{from[i]} << shift);
      buffer->bits[i] = static_cast<uint64_t>(top >> shift);
    }
  } else {
    for (int i = 0; i < kLanes; ++i) {
      buffer->bits[i] = uint64_t{from[i]} << shift >> shift;
    }
  }
}

template <typename Register>
void PutAs(const Warp* warp, uint32_t offset, uint32_t mask, const ConvertBuffer& buffer) {
  Register* const to = Lanes<Register>(warp, offset);
  const uint64_t* const from = buffer.bits;
  EachLane(mask, [=](int i) { to[i] = static_cast<Register>(from[i]); });
}

// Calls f(bits) for every lane and keeps what it returns.
template <typename F>
inline void EachValue(ConvertBuffer* buffer, F&& f) {
  for (int i = 0; i < kLanes; ++i) buffer->bits[i] = f(buffer->bits[i]);
}
template <typename F>
inline void EachDouble(ConvertBuffer* buffer, F&& f) {
  EachValue(buffer, [&](uint64_t bits) { return BitsOfDouble(f(DoubleOf(bits))); });
}

// Exact, subnormals included: the exponent is moved by a product.
inline float F16ToFloat(uint64_t bits) {
  const auto magnitude = static_cast<uint32_t>(bits & 0x7fff) << 13;
  const float scaled = FloatOf(magnitude) * 0x1p112f;
  const bool special = (bits & 0x7c00) == 0x7c00;
  const uint32_t value = special ? magnitude | 0x7f800000u : BitsOfFloat(scaled);
  return FloatOf(value | static_cast<uint32_t>(bits & 0x8000) << 16);
}

struct IntegerRange {
  int64_t least;
  uint64_t most;
};
IntegerRange RangeOf(Type type) {
  const int bits = 8 * TypeBytes(type);
  if (!IsSigned(type)) return {0, ~uint64_t{0} >> (64 - bits)};
  const uint64_t most = ~uint64_t{0} >> (65 - bits);
  return {-static_cast<int64_t>(most) - 1, most};
}

// A magnitude as a double, rounded in `kRounding` at 53 bits; exact below 2^53.
template <Rounding kRounding>
double RoundInteger(uint64_t magnitude, bool negative) {
  const int shift = 11 - std::countl_zero(magnitude);
  if (shift <= 0) return static_cast<double>(magnitude);
  const uint64_t half = uint64_t{1} << (shift - 1);
  const uint64_t kept = magnitude >> shift;
  const uint64_t rest = magnitude & (2 * half - 1);
  bool up = false;
  if constexpr (kRounding == Rounding::kNearest) up = rest > half || (rest == half && kept & 1);
  if constexpr (kRounding == Rounding::kUp) up = rest != 0 && !negative;
  if constexpr (kRounding == Rounding::kDown) up = rest != 0 && negative;
  return std::ldexp(static_cast<double>(kept + (up ? 1 : 0)), shift);
}

template <Rounding kRounding>
void IntegerToF64As(Type from, ConvertBuffer* buffer) {
  const bool is_signed = IsSigned(from);
  EachValue(buffer, [=](uint64_t bits) {
    const bool negative = is_signed && static_cast<int64_t>(bits) < 0;
    const double magnitude = RoundInteger<kRounding>(negative ? 0 - bits : bits, negative);
    return BitsOfDouble(negative ? -magnitude : magnitude);
  });
}

template <typename Format, Rounding kRounding>
void RoundAs(bool finite, uint64_t nan, int shift, int sign_shift, ConvertBuffer* buffer) {
  EachValue(buffer, [=](uint64_t bits) {
    const double value = DoubleOf(bits);
    uint64_t magnitude = RoundMagnitude<Format, kRounding>(value);
    magnitude = LimitMagnitude<Format, kRounding>(magnitude, value, finite);
    const uint64_t sign = bits >> 63 << sign_shift;
    return value != value ? nan : magnitude << shift | sign;
  });
}

template <typename Format>
void RoundTo(Rounding rounding, bool finite, uint64_t nan, int shift, int sign_shift,
             ConvertBuffer* buffer) {
  switch (rounding) {
    case Rounding::kNearest:
      return RoundAs<Format, Rounding::kNearest>(finite, nan, shift, sign_shift, buffer);
    case Rounding::kZero:
      return RoundAs<Format, Rounding::kZero>(finite, nan, shift, sign_shift, buffer);
    case Rounding::kDown:
      return RoundAs<Format, Rounding::kDown>(finite, nan, shift, sign_shift, buffer);
    case Rounding::kUp:
      return RoundAs<Format, Rounding::kUp>(finite, nan, shift, sign_shift, buffer);
    case Rounding::kNearestAway:
      return RoundAs<Format, Rounding::kNearestAway>(finite, nan, shift, sign_shift, buffer);
  }
}

}  // namespace

void TakeLanes(const Warp* warp, uint32_t offset, int width, Type type, ConvertBuffer* buffer) {
  if (width == 2) return TakeAs<uint16_t>(warp, offset, type, buffer);
  if (width == 4) return TakeAs<uint32_t>(warp, offset, type, buffer);
  return TakeAs<uint64_t>(warp, offset, type, buffer);
}

void PutLanes(const Warp* warp, uint32_t offset, int width, uint32_t mask,
              const ConvertBuffer& buffer) {
  if (width == 2) return PutAs<uint16_t>(warp, offset, mask, buffer);
  if (width == 4) return PutAs<uint32_t>(warp, offset, mask, buffer);
  return PutAs<uint64_t>(warp, offset, mask, buffer);
}

void ConvertInteger(Type from, Type to, bool saturate, ConvertBuffer* buffer) {
  const IntegerRange range = RangeOf(to);
  if (saturate && IsSigned(from)) {
    const int64_t least = range.least;
    constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    const auto most = static_cast<int64_t>(range.most < kMost ? range.most : kMost);
    EachValue(buffer, [=](uint64_t bits) {
      const auto value = static_cast<int64_t>(bits);
      return static_cast<uint64_t>(value < least ? least : (value > most ? most : value));
    });
  } else if (saturate) {
    const uint64_t most = range.most;
    EachValue(buffer, [=](uint64_t value) { return value > most ? most : value; });
  }
  const int shift = 64 - 8 * TypeBytes(to);
  if (IsSigned(to)) {
    EachValue(buffer, [=](uint64_t bits) {
      return static_cast<uint64_t>(static_cast<int64_t>(bits << shift) >> shift);
    });
  } else {
    EachValue(buffer, [=](uint64_t bits) { return bits << shift >> shift; });
  }
}

void BitsToDouble(Type from, bool flush, ConvertBuffer* buffer) {
  switch (from) {
    case Type::kF16:
      return EachValue(buffer, [](uint64_t bits) { return BitsOfDouble(F16ToFloat(bits)); });
    case Type::kBF16:
      return EachValue(buffer, [](uint64_t bits) {
        return BitsOfDouble(FloatOf(static_cast<uint32_t>(bits << 16)));
      });
    case Type::kF32:
      return EachValue(buffer, [=](uint64_t bits) {
        const auto value = static_cast<uint32_t>(bits);
        return BitsOfDouble(FloatOf(flush ? Flush32(value) : value));
      });
    default:
      return EachValue(buffer, [](uint64_t bits) {
        const bool is_nan = (bits & 0x7fff'ffff'ffff'ffffu) > 0x7ff0'0000'0000'0000u;
        return bits | (is_nan ? 0x0008'0000'0000'0000u : 0);
      });
  }
}

void IntegerToDouble(Type from, ConvertBuffer* buffer) {
  const bool is_signed = IsSigned(from);
  EachValue(buffer, [=](uint64_t bits) {
    const bool negative = is_signed && static_cast<int64_t>(bits) < 0;
    const uint64_t magnitude = negative ? 0 - bits : bits;
    const bool large = magnitude >> 53 != 0;
    const uint64_t odd = magnitude >> 11 | ((magnitude & 0x7ff) != 0 ? 1 : 0);
    const double value = static_cast<double>(static_cast<int64_t>(large ? odd : magnitude));
    const double scaled = large ? value * 0x1p11 : value;
    return BitsOfDouble(negative ? -scaled : scaled);
  });
}

void IntegerToF64(Type from, Rounding rounding, ConvertBuffer* buffer) {
  switch (rounding) {
    case Rounding::kZero:
      return IntegerToF64As<Rounding::kZero>(from, buffer);
    case Rounding::kDown:
      return IntegerToF64As<Rounding::kDown>(from, buffer);
    case Rounding::kUp:
      return IntegerToF64As<Rounding::kUp>(from, buffer);
    default:
      return IntegerToF64As<Rounding::kNearest>(from, buffer);
  }
}

void RoundToIntegral(Rounding rounding, ConvertBuffer* buffer) {
  switch (rounding) {
    case Rounding::kZero:
      return EachDouble(buffer, [](double value) { return __builtin_trunc(value); });
    case Rounding::kDown:
      return EachDouble(buffer, [](double value) { return __builtin_floor(value); });
    case Rounding::kUp:
      return EachDouble(buffer, [](double value) { return __builtin_ceil(value); });
    default:
      return EachDouble(buffer, [](double value) { return __builtin_rint(value); });
  }
}

void DoubleToInteger(Type to, uint64_t nan, ConvertBuffer* buffer) {
  const IntegerRange range = RangeOf(to);
  // The first number that is too large, exact in double.
  const double end = std::ldexp(1.0, 8 * TypeBytes(to) - (IsSigned(to) ? 1 : 0));
  const auto least = static_cast<double>(range.least);
  const bool wide = to == Type::kU64;
  EachValue(buffer, [=](uint64_t bits) -> uint64_t {
    const double value = DoubleOf(bits);
    if (value != value) return nan;
    if (value >= end) return range.most;
    if (value <= least) return static_cast<uint64_t>(range.least);
    if (wide && value >= 0x1p63) {
      return static_cast<uint64_t>(static_cast<int64_t>(value - 0x1p63)) + (uint64_t{1} << 63);
    }
    return static_cast<uint64_t>(static_cast<int64_t>(value));
  });
}

void SaturatePass(ConvertBuffer* buffer) {
  EachDouble(buffer, [](double value) { return Saturate(value); });
}

void ReluPass(ConvertBuffer* buffer) {
  EachDouble(buffer, [](double value) { return value <= 0.0 ? 0.0 : value; });
}

void DoubleToBits(FloatFormat to, Rounding rounding, bool finite, ConvertBuffer* buffer) {
  switch (to) {
    case FloatFormat::kF16:
      return RoundTo<F16Format>(rounding, finite, kNan16, 0, 15, buffer);
    case FloatFormat::kBF16:
      return RoundTo<BF16Format>(rounding, finite, kNan16, 0, 15, buffer);
    case FloatFormat::kF32:
      return RoundTo<F32Format>(rounding, finite, kNan32, 0, 31, buffer);
    case FloatFormat::kTF32:
      return RoundTo<TF32Format>(rounding, finite, kNan32, 13, 31, buffer);
    case FloatFormat::kE4M3:
      return RoundTo<E4M3Format>(rounding, true, 0x7f, 0, 7, buffer);
    case FloatFormat::kE5M2:
      return RoundTo<E5M2Format>(rounding, true, 0x7f, 0, 7, buffer);
  }
}

}  // namespace assay::emulator
