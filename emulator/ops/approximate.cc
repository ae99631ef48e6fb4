// Approximate functions (PTX ISA 9.7.3, 9.7.4): computed in double and rounded.
#include "emulator/ops/approximate.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "base/status.h"
#include "emulator/execute/warp.h"
#include "emulator/ops/decode.h"
#include "emulator/ops/half_lanes.h"
#include "emulator/ops/handlers.h"
#include "emulator/ops/ops.h"
#include "emulator/ops/rounding.h"

namespace assay::emulator {
namespace {

// The builtin of the C library would look at errno.
inline double SquareRoot(double a) {
  const __m128d value = _mm_set_sd(a);
  return _mm_cvtsd_f64(_mm_sqrt_sd(value, value));
}

// The functions: their value, as near as double gives it, and their bound at an operand. Zeros,
// infinities and NaN come out as PTX says without help.
struct Reciprocal {
  static double Value(double x) { return 1.0 / x; }
  static ApproximationBound Bound(double) { return kReciprocalBound; }
};
struct Root {
  static double Value(double x) { return SquareRoot(x); }
  static ApproximationBound Bound(double) { return kSquareRootBound; }
};
struct ReciprocalRoot {
  static double Value(double x) { return 1.0 / SquareRoot(x); }
  static ApproximationBound Bound(double) { return kReciprocalRootBound; }
};
struct Exp2 {
  static double Value(double x) { return std::exp2(x); }
  static ApproximationBound Bound(double) { return kExp2Bound; }
  static constexpr ApproximationBound kF16 = kExp2F16Bound;
  static constexpr ApproximationBound kBF16 = kExp2BF16Bound;
};
struct Log2 {
  static double Value(double x) { return std::log2(x); }
  static ApproximationBound Bound(double x) {
    const bool near_one = x > 0.5 && x < 2.0;
    return {near_one ? BoundKind::kAbsolute : BoundKind::kRelative, kLog2Bound};
  }
};
inline ApproximationBound SineBound(double x) {
  return {BoundKind::kAbsolute, std::abs(x) <= kSineNear ? kSineNearBound : kSineFarBound};
}
struct Sine {
  static double Value(double x) { return std::sin(x); }
  static ApproximationBound Bound(double x) { return SineBound(x); }
};
struct Cosine {
  static double Value(double x) { return std::cos(x); }
  static ApproximationBound Bound(double x) { return SineBound(x); }
};
struct Tanh {
  static double Value(double x) { return std::tanh(x); }
  static ApproximationBound Bound(double) { return kTanhBound; }
  static constexpr ApproximationBound kF16 = kTanhF16Bound;
  static constexpr ApproximationBound kBF16 = kTanhBF16Bound;
};
template <typename Function>
inline constexpr bool kWithinOne =
    std::is_same_v<Function, Sine> || std::is_same_v<Function, Cosine> ||
    std::is_same_v<Function, Tanh>;

// What a double's own error could take away from a bound.
constexpr double kSlack = 1.0 - 1e-9;

// `exact` is not zero. At a power of two the value may be just below it, where an ulp is smaller.
double AbsoluteBound(const ApproximationBound& bound, double exact) {
  switch (bound.kind) {
    case BoundKind::kUlp: {
      const int exponent = std::ilogb(std::nextafter(std::abs(exact), 0.0));
      return std::ldexp(bound.value, std::max(exponent, -126) - 23);
    }
    case BoundKind::kRelative:
      return bound.value * std::abs(exact);
    case BoundKind::kAbsolute:
      return bound.value;
  }
  return 0;
}

// `exact` moved by a random part of `bound`.
double Moved(Warp* warp, double exact, double bound) {
  const double part = std::ldexp(static_cast<double>(NextRandom(warp) >> 11), -52) - 1.0;
  return exact + part * bound;
}

// Whether a result may move: ordinary operands with ordinary results.
bool MayMove(double x, double exact) {
  return x != 0.0 && std::isfinite(x) && std::isfinite(exact) && exact != 0.0;
}

template <bool kBounded>
float Perturb(Warp* warp, double exact, const ApproximationBound& bound) {
  const double distance = kSlack * AbsoluteBound(bound, exact);
  double moved = Moved(warp, exact, distance);
  if constexpr (kBounded) moved = std::clamp(moved, -1.0, 1.0);
  const auto result = static_cast<float>(moved);
  return std::abs(result - exact) <= distance ? result : static_cast<float>(exact);
}

template <bool kFlush>
inline uint32_t Finish(float value) {
  const uint32_t bits = value != value ? kNan32 : BitsOfFloat(value);
  return kFlush ? Flush32(bits) : bits;
}

template <typename Function, bool kFlush>
void UnaryApproximate(Warp* warp, const Op& op, uint32_t mask) {
  uint32_t* const to = Lanes<uint32_t>(warp, op.dst);
  const uint32_t* const a = Lanes<uint32_t>(warp, op.a);
  if (!PerturbApproximations(warp)) {
    EachLane(mask, [=](int i) {
      const double x = FloatOf(kFlush ? Flush32(a[i]) : a[i]);
      to[i] = Finish<kFlush>(static_cast<float>(Function::Value(x)));
    });
    return;
  }
  EachLane(mask, [=](int i) {
    const double x = FloatOf(kFlush ? Flush32(a[i]) : a[i]);
    const double exact = Function::Value(x);
    auto result = static_cast<float>(exact);
    if (MayMove(x, exact)) {
      result = Perturb<kWithinOne<Function>>(warp, exact, Function::Bound(x));
    }
    to[i] = Finish<kFlush>(result);
  });
}

// div.approx multiplies with a reciprocal, which underflows for large divisors; div.full scales.
template <bool kFull>
inline bool DivisorTooLarge(double b) {
  return !kFull && std::abs(b) > 0x1p126 && std::abs(b) < 0x1p128;
}

template <bool kFull>
inline double Quotient(double a, double b) {
  return DivisorTooLarge<kFull>(b) ? a * std::copysign(0.0, b) : a / b;
}

template <bool kFull, bool kFlush>
void DivideApproximate(Warp* warp, const Op& op, uint32_t mask) {
  uint32_t* const to = Lanes<uint32_t>(warp, op.dst);
  const uint32_t* const a = Lanes<uint32_t>(warp, op.a);
  const uint32_t* const b = Lanes<uint32_t>(warp, op.b);
  const bool perturb = PerturbApproximations(warp);
  EachLane(mask, [=](int i) {
    const double left = FloatOf(kFlush ? Flush32(a[i]) : a[i]);
    const double right = FloatOf(kFlush ? Flush32(b[i]) : b[i]);
    const double exact = Quotient<kFull>(left, right);
    auto result = static_cast<float>(exact);
    if (perturb && std::isfinite(right) && MayMove(left, exact)) {
      result = Perturb<false>(warp, exact, kDivideBound);
    }
    to[i] = Finish<kFlush>(result);
  });
}

// One of f16 and bf16: in float, or, to be moved, with both candidates rounded.
template <typename Function, typename Format, bool kPacked>
void HalfApproximate(Warp* warp, const Op& op, uint32_t mask) {
  constexpr int kCount = kHalfCount<kPacked>;
  constexpr bool kBFloat = std::is_same_v<Format, BF16Lanes>;
  // ex2 of bf16 exists with .ftz only, of f16 without.
  constexpr bool kFlush = kBFloat && std::is_same_v<Function, Exp2>;
  constexpr ApproximationBound kBound = kBFloat ? Function::kBF16 : Function::kF16;
  HalfBits bits;
  HalfFloats x;
  HalfFloats result;
  ReadHalves<kPacked>(warp, op.a, &bits);
  if constexpr (kFlush) {
    for (int i = 0; i < kCount; ++i) bits.values[i] = Format::Flush(bits.values[i]);
  }
  Format::template Widen<kCount>(bits, &x);
  for (int i = 0; i < kCount; ++i) {
    result.values[i] = static_cast<float>(Function::Value(x.values[i]));
  }
  Format::template Narrow<kCount>(result, &bits);
  if (PerturbApproximations(warp)) {
    HalfFloats moved;
    HalfBits moved_bits;
    HalfFloats rounded;
    for (int i = 0; i < kCount; ++i) {
      const double exact = result.values[i];
      moved.values[i] = result.values[i];
      if (!MayMove(x.values[i], exact)) continue;
      double value = Moved(warp, exact, AbsoluteBound(kBound, exact));
      if constexpr (kWithinOne<Function>) value = std::clamp(value, -1.0, 1.0);
      moved.values[i] = static_cast<float>(value);
    }
    Format::template Narrow<kCount>(moved, &moved_bits);
    Format::template Widen<kCount>(moved_bits, &rounded);
    for (int i = 0; i < kCount; ++i) {
      const double exact = result.values[i];
      const double bound = AbsoluteBound(kBound, Function::Value(x.values[i]));
      // Half a thousandth less, for what float has lost of the exact value.
      const bool within = std::abs(rounded.values[i] - exact) <= 0.9995 * bound;
      if (MayMove(x.values[i], exact) && within) bits.values[i] = moved_bits.values[i];
    }
  }
  if constexpr (kFlush) {
    for (int i = 0; i < kCount; ++i) bits.values[i] = Format::Flush(bits.values[i]);
  }
  WriteHalves<kPacked>(warp, op.dst, mask, bits);
}

// The upper word of an f64 stands for the whole, and the result has no lower one.
constexpr uint64_t kUpperWord = 0xffff'ffff'0000'0000u;
constexpr uint64_t kGrossNan = 0x7fff'ffff'0000'0000u;

inline uint64_t Flush64(uint64_t bits) {
  return (bits & 0x7ff0'0000'0000'0000u) == 0 ? bits & 0x8000'0000'0000'0000u : bits;
}

template <typename Function>
struct Gross64 {
  static uint64_t Apply(uint64_t a) {
    const double result = Function::Value(DoubleOf(Flush64(a & kUpperWord)));
    if (result != result) return kGrossNan;
    return Flush64((BitsOfDouble(result) + 0x8000'0000u) & kUpperWord);
  }
};

struct ReciprocalRoot64 {
  static uint64_t Apply(uint64_t a) {
    const double x = DoubleOf(a);
    if (x != x) return a | 0x0008'0000'0000'0000u;
    return BitsOfDouble(static_cast<double>(1.0L / std::sqrt(static_cast<long double>(x))));
  }
};

template <typename Function>
Handler PickUnary(bool flush) {
  return flush ? &UnaryApproximate<Function, true> : &UnaryApproximate<Function, false>;
}

Handler Pick32(std::string_view mnemonic, bool full, bool flush) {
  if (mnemonic == "div") {
    if (full) return flush ? &DivideApproximate<true, true> : &DivideApproximate<true, false>;
    return flush ? &DivideApproximate<false, true> : &DivideApproximate<false, false>;
  }
  if (full) return nullptr;
  if (mnemonic == "rcp") return PickUnary<Reciprocal>(flush);
  if (mnemonic == "sqrt") return PickUnary<Root>(flush);
  if (mnemonic == "rsqrt") return PickUnary<ReciprocalRoot>(flush);
  if (mnemonic == "ex2") return PickUnary<Exp2>(flush);
  if (mnemonic == "lg2") return PickUnary<Log2>(flush);
  if (mnemonic == "sin") return PickUnary<Sine>(flush);
  if (mnemonic == "cos") return PickUnary<Cosine>(flush);
  if (mnemonic == "tanh" && !flush) return &UnaryApproximate<Tanh, false>;
  return nullptr;
}

Handler Pick64(std::string_view mnemonic, bool flush) {
  if (mnemonic == "rcp" && flush) return &UnaryHandler<Gross64<Reciprocal>, uint64_t, uint64_t>;
  if (mnemonic != "rsqrt") return nullptr;
  return flush ? &UnaryHandler<Gross64<ReciprocalRoot>, uint64_t, uint64_t>
               : &UnaryHandler<ReciprocalRoot64, uint64_t, uint64_t>;
}

template <typename Function>
Handler PickHalf(Type type) {
  switch (type) {
    case Type::kF16:
      return &HalfApproximate<Function, F16Lanes, false>;
    case Type::kF16x2:
      return &HalfApproximate<Function, F16Lanes, true>;
    case Type::kBF16:
      return &HalfApproximate<Function, BF16Lanes, false>;
    case Type::kBF16x2:
      return &HalfApproximate<Function, BF16Lanes, true>;
    default:
      return nullptr;
  }
}

Handler Pick(std::string_view mnemonic, Type type, bool full, bool flush) {
  if (type == Type::kF32) return Pick32(mnemonic, full, flush);
  if (type == Type::kF64) return full ? nullptr : Pick64(mnemonic, flush);
  const bool bfloat = type == Type::kBF16 || type == Type::kBF16x2;
  if (mnemonic == "ex2" && flush == bfloat) return PickHalf<Exp2>(type);
  return mnemonic == "tanh" && !flush ? PickHalf<Tanh>(type) : nullptr;
}

}  // namespace

absl::Status DecodeApproximate(const Instruction& instruction, Decoder* decoder, Op* op) {
  const std::string_view mnemonic = instruction.mnemonic;
  Modifiers modifiers(instruction);
  const bool approximate = modifiers.Take("approx");
  const bool full = !approximate && mnemonic == "div" && modifiers.Take("full");
  const bool flush = modifiers.Take("ftz");
  const Type type = modifiers.TakeType();
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  if (approximate || full) op->handler = Pick(mnemonic, type, full, flush);
  if (op->handler == nullptr) return UnknownType("this form", type);
  SetInfo(decoder, OpClass::kSpecial);
  const Type operand = IsHalf(type) ? BitsOf(type) : type;
  if (mnemonic == "div") {
    return DecodeOperands(instruction, decoder, op, operand, {operand, operand});
  }
  return DecodeOperands(instruction, decoder, op, operand, {operand});
}

void AddApproximateOps(OpTable* table) {
  for (const std::string_view mnemonic : {"ex2", "lg2", "rsqrt", "sin", "cos", "tanh"}) {
    table->Add(mnemonic, DecodeApproximate);
  }
}

}  // namespace assay::emulator
