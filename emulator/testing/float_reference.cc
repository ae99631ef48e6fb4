#include "emulator/testing/float_reference.h"

#include <mpfr.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace assay::emulator {
namespace {

struct Layout {
  int bits;
  int fraction;
  int exponent_bias;
};
Layout LayoutOf(RefFormat format) {
  switch (format) {
    case RefFormat::kF16:
      return {16, 10, 15};
    case RefFormat::kBF16:
      return {16, 7, 127};
    case RefFormat::kTF32:
    case RefFormat::kF32:
      return {32, 23, 127};
    case RefFormat::kF64:
      return {64, 52, 1023};
    case RefFormat::kE4M3:
      return {8, 3, 7};
    case RefFormat::kE5M2:
      return {8, 2, 15};
  }
  std::abort();
}

// MPFR's significand and exponents of a format: numbers are 0.1xxx times two to the exponent.
struct Range {
  int precision;
  mpfr_exp_t least;
  mpfr_exp_t most;
};
Range RangeOf(RefFormat format) {
  switch (format) {
    case RefFormat::kF16:
      return {11, -23, 16};
    case RefFormat::kBF16:
      return {8, -132, 128};
    case RefFormat::kTF32:
      return {11, -135, 128};
    case RefFormat::kF32:
      return {24, -148, 128};
    case RefFormat::kF64:
      return {53, -1073, 1024};
    case RefFormat::kE4M3:
      return {4, -8, 9};
    case RefFormat::kE5M2:
      return {3, -15, 16};
  }
  std::abort();
}

mpfr_rnd_t ModeOf(RefRounding rounding) {
  switch (rounding) {
    case RefRounding::kZero:
      return MPFR_RNDZ;
    case RefRounding::kDown:
      return MPFR_RNDD;
    case RefRounding::kUp:
      return MPFR_RNDU;
    default:
      return MPFR_RNDN;
  }
}

class Number {
 public:
  explicit Number(int precision) { mpfr_init2(value_, precision); }
  Number(int precision, double value) : Number(precision) { mpfr_set_d(value_, value, MPFR_RNDN); }
  ~Number() { mpfr_clear(value_); }
  Number(const Number&) = delete;
  Number& operator=(const Number&) = delete;
  mpfr_ptr get() { return value_; }

 private:
  mpfr_t value_;
};

// Calls f(result, mode), which rounds to the precision of the format, and brings the result into
// the format's range, subnormals included, as one rounding.
template <typename F>
double InRange(RefFormat format, RefRounding rounding, F&& f) {
  const Range range = RangeOf(format);
  const mpfr_rnd_t mode = ModeOf(rounding);
  const mpfr_exp_t least = mpfr_get_emin();
  const mpfr_exp_t most = mpfr_get_emax();
  Number result(range.precision);
  int ternary = f(result.get(), mode);
  mpfr_set_emin(range.least);
  mpfr_set_emax(range.most);
  ternary = mpfr_check_range(result.get(), ternary, mode);
  mpfr_subnormalize(result.get(), ternary, mode);
  const double value = mpfr_get_d(result.get(), MPFR_RNDN);
  mpfr_set_emin(least);
  mpfr_set_emax(most);
  return value;
}

double LargestOf(RefFormat format) {
  switch (format) {
    case RefFormat::kF16:
      return 65504.0;
    case RefFormat::kBF16:
      return 0x1.fep127;
    case RefFormat::kTF32:
      return 0x1.ffcp127;
    case RefFormat::kF32:
      return 0x1.fffffep127;
    case RefFormat::kF64:
      return std::numeric_limits<double>::max();
    case RefFormat::kE4M3:
      return 448.0;
    case RefFormat::kE5M2:
      return 57344.0;
  }
  std::abort();
}

uint64_t Raw(double value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// Ties away from zero: the quotient by the last place is rounded as a number of its own.
double NearestAway(RefFormat format, double value) {
  if (value == 0.0 || !std::isfinite(value)) return value;
  const Layout layout = LayoutOf(format);
  const int fraction = format == RefFormat::kTF32 ? 10 : layout.fraction;
  const int exponent = std::max(std::ilogb(value), 1 - layout.exponent_bias);
  const double last_place = std::ldexp(1.0, exponent - fraction);
  Number quotient(80, value);
  mpfr_div_d(quotient.get(), quotient.get(), last_place, MPFR_RNDN);
  mpfr_round(quotient.get(), quotient.get());
  mpfr_mul_d(quotient.get(), quotient.get(), last_place, MPFR_RNDN);
  const double result = mpfr_get_d(quotient.get(), MPFR_RNDN);
  return std::abs(result) > LargestOf(format)
             ? std::copysign(std::numeric_limits<double>::infinity(), value)
             : result;
}

}  // namespace

RefRounding RefRoundingOf(std::string_view name) {
  if (name == "rn" || name == "rni") return RefRounding::kNearest;
  if (name == "rz" || name == "rzi") return RefRounding::kZero;
  if (name == "rm" || name == "rmi") return RefRounding::kDown;
  if (name == "rp" || name == "rpi") return RefRounding::kUp;
  if (name == "rna") return RefRounding::kNearestAway;
  std::abort();
}

double RefValue(RefFormat format, uint64_t bits) {
  if (RefIsNan(format, bits)) return std::numeric_limits<double>::quiet_NaN();
  const Layout layout = LayoutOf(format);
  if (format == RefFormat::kF64) {
    double value = 0;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }
  const uint64_t fraction = bits & ((uint64_t{1} << layout.fraction) - 1);
  const int exponent_bits = layout.bits - 1 - layout.fraction;
  const auto exponent =
      static_cast<int>(bits >> layout.fraction & ((uint64_t{1} << exponent_bits) - 1));
  const bool negative = (bits >> (layout.bits - 1) & 1) != 0;
  double value = 0;
  if (exponent == (1 << exponent_bits) - 1 && format != RefFormat::kE4M3) {
    value = std::numeric_limits<double>::infinity();
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<double>(fraction), 1 - layout.exponent_bias - layout.fraction);
  } else {
    const uint64_t whole = fraction + (uint64_t{1} << layout.fraction);
    value =
        std::ldexp(static_cast<double>(whole), exponent - layout.exponent_bias - layout.fraction);
  }
  return negative ? -value : value;
}

bool RefIsNan(RefFormat format, uint64_t bits) {
  const Layout layout = LayoutOf(format);
  const uint64_t magnitude = bits & ((uint64_t{1} << (layout.bits - 1)) - 1);
  if (format == RefFormat::kE4M3) return magnitude == 0x7f;
  const uint64_t infinity = ((uint64_t{1} << (layout.bits - 1)) - 1) >> layout.fraction
                                                                            << layout.fraction;
  return magnitude > infinity;
}

bool RefIsSubnormal(RefFormat format, uint64_t bits) {
  const Layout layout = LayoutOf(format);
  const uint64_t magnitude = bits & ((uint64_t{1} << (layout.bits - 1)) - 1);
  return magnitude != 0 && magnitude < uint64_t{1} << layout.fraction;
}

uint64_t RefNan(RefFormat format) {
  switch (format) {
    case RefFormat::kF16:
    case RefFormat::kBF16:
      return 0x7fff;
    case RefFormat::kTF32:
    case RefFormat::kF32:
      return 0x7fffffff;
    case RefFormat::kF64:
      return 0xfff8000000000000;
    default:
      return 0x7f;
  }
}

uint64_t RefFlush(RefFormat format, uint64_t bits) {
  if (!RefIsSubnormal(format, bits)) return bits;
  return bits & uint64_t{1} << (LayoutOf(format).bits - 1);
}

uint64_t RefEncode(RefFormat format, double value) {
  if (format == RefFormat::kF64) return Raw(value);
  const Layout layout = LayoutOf(format);
  const uint64_t sign = std::signbit(value) ? uint64_t{1} << (layout.bits - 1) : 0;
  if (std::isnan(value)) return RefNan(format);
  const double magnitude = std::abs(value);
  const int least = 1 - layout.exponent_bias;
  if (std::isinf(value)) {
    return sign | (((uint64_t{1} << (layout.bits - 1)) - 1) >> layout.fraction << layout.fraction);
  }
  if (magnitude == 0) return sign;
  const int exponent = std::ilogb(magnitude);
  if (exponent < least) {
    return sign | static_cast<uint64_t>(std::ldexp(magnitude, layout.fraction - least));
  }
  const auto whole = static_cast<uint64_t>(std::ldexp(magnitude, layout.fraction - exponent));
  const auto biased = static_cast<uint64_t>(exponent + layout.exponent_bias);
  return sign | ((biased << layout.fraction) + whole - (uint64_t{1} << layout.fraction));
}

uint64_t RefArithmetic(RefFormat format, RefOperation operation, RefRounding rounding, uint64_t a,
                       uint64_t b, uint64_t c) {
  const bool one = operation == RefOperation::kReciprocal || operation == RefOperation::kSquareRoot;
  const int count = one ? 1 : (operation == RefOperation::kFma ? 3 : 2);
  const uint64_t operands[] = {a, b, c};
  for (int i = 0; i < count; ++i) {
    if (!RefIsNan(format, operands[i])) continue;
    return format == RefFormat::kF64 ? operands[i] | uint64_t{1} << 51 : RefNan(format);
  }
  Number x(53, RefValue(format, a));
  Number y(53, one ? 0 : RefValue(format, b));
  Number z(53, count == 3 ? RefValue(format, c) : 0);
  const double value = InRange(format, rounding, [&](mpfr_ptr result, mpfr_rnd_t mode) {
    switch (operation) {
      case RefOperation::kAdd:
        return mpfr_add(result, x.get(), y.get(), mode);
      case RefOperation::kSubtract:
        return mpfr_sub(result, x.get(), y.get(), mode);
      case RefOperation::kMultiply:
        return mpfr_mul(result, x.get(), y.get(), mode);
      case RefOperation::kFma:
        return mpfr_fma(result, x.get(), y.get(), z.get(), mode);
      case RefOperation::kDivide:
        return mpfr_div(result, x.get(), y.get(), mode);
      case RefOperation::kReciprocal:
        return mpfr_ui_div(result, 1, x.get(), mode);
      case RefOperation::kSquareRoot:
        return mpfr_sqrt(result, x.get(), mode);
    }
    std::abort();
  });
  return std::isnan(value) ? RefNan(format) : RefEncode(format, value);
}

uint64_t RefFromDouble(RefFormat format, RefRounding rounding, double value, bool finite) {
  if (std::isnan(value)) {
    return format == RefFormat::kF64 ? Raw(value) | uint64_t{1} << 51 : RefNan(format);
  }
  double rounded = 0;
  if (rounding == RefRounding::kNearestAway) {
    rounded = NearestAway(format, value);
  } else {
    rounded = InRange(format, rounding, [&](mpfr_ptr result, mpfr_rnd_t mode) {
      return mpfr_set_d(result, value, mode);
    });
  }
  const double largest = LargestOf(format);
  if (finite && std::abs(rounded) > largest) rounded = std::copysign(largest, rounded);
  return RefEncode(format, rounded);
}

uint64_t RefFromSigned(RefFormat format, RefRounding rounding, int64_t value) {
  return RefEncode(format, InRange(format, rounding, [&](mpfr_ptr result, mpfr_rnd_t mode) {
                     return mpfr_set_si(result, value, mode);
                   }));
}

uint64_t RefFromUnsigned(RefFormat format, RefRounding rounding, uint64_t value) {
  return RefEncode(format, InRange(format, rounding, [&](mpfr_ptr result, mpfr_rnd_t mode) {
                     return mpfr_set_ui(result, value, mode);
                   }));
}

double RefIntegral(RefRounding rounding, double value) {
  if (!std::isfinite(value)) return value;
  Number exact(53, value);
  Number result(53);
  mpfr_rint(result.get(), exact.get(), ModeOf(rounding));
  return mpfr_get_d(result.get(), MPFR_RNDN);
}

uint64_t RefSaturate(RefFormat format, uint64_t bits) {
  if (RefIsNan(format, bits)) return 0;
  const double value = RefValue(format, bits);
  if (value <= 0) return 0;
  return value >= 1 ? RefEncode(format, 1.0) : bits;
}

uint64_t RefRelu(RefFormat format, uint64_t bits) {
  if (RefIsNan(format, bits)) return RefNan(format);
  return RefValue(format, bits) <= 0 ? 0 : bits;
}

RefDistance DistanceFrom(RefFunction function, double x, double y, double got) {
  constexpr int kPrecision = 200;
  Number a(kPrecision, x);
  Number b(kPrecision, y);
  Number value(kPrecision);
  mpfr_ptr result = value.get();
  switch (function) {
    case RefFunction::kReciprocal:
      mpfr_ui_div(result, 1, a.get(), MPFR_RNDN);
      break;
    case RefFunction::kSquareRoot:
      mpfr_sqrt(result, a.get(), MPFR_RNDN);
      break;
    case RefFunction::kReciprocalRoot:
      mpfr_rec_sqrt(result, a.get(), MPFR_RNDN);
      break;
    case RefFunction::kDivide:
      mpfr_div(result, a.get(), b.get(), MPFR_RNDN);
      break;
    case RefFunction::kExp2:
      mpfr_exp2(result, a.get(), MPFR_RNDN);
      break;
    case RefFunction::kLog2:
      mpfr_log2(result, a.get(), MPFR_RNDN);
      break;
    case RefFunction::kSine:
      mpfr_sin(result, a.get(), MPFR_RNDN);
      break;
    case RefFunction::kCosine:
      mpfr_cos(result, a.get(), MPFR_RNDN);
      break;
    case RefFunction::kTanh:
      mpfr_tanh(result, a.get(), MPFR_RNDN);
      break;
  }
  RefDistance distance;
  Number difference(kPrecision);
  mpfr_sub_d(difference.get(), result, got, MPFR_RNDN);
  mpfr_abs(difference.get(), difference.get(), MPFR_RNDN);
  distance.absolute = mpfr_get_d(difference.get(), MPFR_RNDU);
  distance.exact = mpfr_get_d(result, MPFR_RNDZ);
  const double exact = std::abs(distance.exact);
  distance.relative = exact == 0 ? 0 : distance.absolute / exact;
  const int exponent = exact == 0 ? -126 : std::max(std::ilogb(exact), -126);
  distance.ulps = distance.absolute / std::ldexp(1.0, exponent - 23);
  return distance;
}

}  // namespace assay::emulator
