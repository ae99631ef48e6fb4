// f16 and bf16 arithmetic, one or two numbers a lane (PTX ISA 9.7.4).
//
// Every result is rounded once: sums and products through float, which holds them well enough that
// the second rounding changes nothing, fused ones through double, rounded to odd where double is
// not exact. NaN results are 0x7fff.
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "base/status.h"
#include "emulator/ops/decode.h"
#include "emulator/ops/half_lanes.h"
#include "emulator/ops/rounding.h"

namespace assay::emulator {
namespace {

enum class Arithmetic { kAdd, kSubtract, kMultiply, kFma };
enum class Limit { kNone, kSaturate, kRelu };

// A double that keeps, below the bits a float has, only whether anything was there: rounding it
// further to a format of at most 22 bits is the same as rounding the exact value.
inline double Sticky(double value) {
  constexpr uint64_t kBelow = (uint64_t{1} << 29) - 1;
  const uint64_t bits = BitsOfDouble(value);
  const uint64_t sticky = (bits & kBelow) != 0 ? kBelow + 1 : 0;
  return DoubleOf((bits & ~kBelow) | sticky);
}

// The sum rounded to odd: exact, or the neighbour of the exact one whose last bit is set.
inline double OddSum(double a, double b) {
  const double sum = a + b;
  const double part = sum - a;
  const double error = (a - (sum - part)) + (b - part);
  const uint64_t bits = BitsOfDouble(sum);
  const uint64_t toward_zero = (BitsOfDouble(error) ^ bits) >> 63;
  const uint64_t step = (bits & 1) == 0 ? 1 - 2 * toward_zero : 0;
  return DoubleOf(bits + (__builtin_fabs(error) > 0.0 ? step : 0));
}

// As Sticky, but below the normal numbers of bf16 rounded already: float has no bits to spare
// there. The sum with a large number leaves multiples of the least subnormal one.
inline double StickyBF16(double value) {
  const double large = __builtin_copysign(0x1.8p-81, value);  // 1.5 * 2^(52 - 133)
  const double rounded = (value + large) - large;
  const uint64_t tiny = BitsOfDouble(__builtin_copysign(rounded, value));
  const uint64_t normal = BitsOfDouble(Sticky(value));
  // A mask, because the compiler would branch to save the additions.
  const bool is_tiny = __builtin_fabs(value) < 0x1p-126;
  const uint64_t mask = is_tiny ? ~uint64_t{0} : 0;
  return DoubleOf((tiny & mask) | (normal & ~mask));
}

template <typename Format, Arithmetic kArithmetic, int kCount>
inline void Compute(const HalfFloats& a, const HalfFloats& b, const HalfFloats& c,
                    HalfBits* result) {
  HalfFloats values;
  if constexpr (kArithmetic != Arithmetic::kFma) {
    for (int i = 0; i < kCount; ++i) {
      const float left = a.values[i];
      const float right = b.values[i];
      if constexpr (kArithmetic == Arithmetic::kAdd) values.values[i] = left + right;
      if constexpr (kArithmetic == Arithmetic::kSubtract) values.values[i] = left - right;
      if constexpr (kArithmetic == Arithmetic::kMultiply) values.values[i] = left * right;
    }
    Format::template Narrow<kCount>(values, result);
  } else {
    // The product is exact in double. The sum of f16 is as well wherever its rounding could matter:
    // f16 has 11 bits and a range of 40. bf16 has the range of float.
    constexpr bool kF16 = std::is_same_v<Format, F16Lanes>;
    alignas(32) double sums[kCount];
    for (int i = 0; i < kCount; ++i) {
      const double product = static_cast<double>(a.values[i]) * b.values[i];
      const double addend = c.values[i];
      sums[i] = kF16 ? product + addend : OddSum(product, addend);
    }
    for (int i = 0; i < kCount; ++i) {
      values.values[i] = static_cast<float>(kF16 ? Sticky(sums[i]) : StickyBF16(sums[i]));
    }
    Format::template Narrow<kCount>(values, result);
  }
}

template <typename Format>
inline constexpr uint16_t kOne = std::is_same_v<Format, F16Lanes> ? 0x3c00 : 0x3f80;

template <typename Format, bool kFlush, Limit kLimit>
inline uint16_t Finish(uint16_t bits) {
  if constexpr (kLimit == Limit::kSaturate) {
    const bool zero = (bits & 0x8000) != 0 || Format::IsNan(bits);
    bits = zero ? 0 : (bits > kOne<Format> ? kOne<Format> : bits);
  }
  if constexpr (kLimit == Limit::kRelu) bits = (bits & 0x8000) != 0 ? 0 : bits;
  return kFlush ? Format::Flush(bits) : bits;
}

template <typename Format, bool kPacked, bool kFlush>
inline void Load(const Warp* warp, uint32_t offset, HalfFloats* values) {
  constexpr int kCount = kHalfCount<kPacked>;
  HalfBits bits;
  ReadHalves<kPacked>(warp, offset, &bits);
  if constexpr (kFlush) {
    for (int i = 0; i < kCount; ++i) bits.values[i] = Format::Flush(bits.values[i]);
  }
  Format::template Widen<kCount>(bits, values);
}

template <typename Format, Arithmetic kArithmetic, bool kPacked, bool kFlush, Limit kLimit>
void ArithmeticHandler(Warp* warp, const Op& op, uint32_t mask) {
  constexpr int kCount = kHalfCount<kPacked>;
  HalfFloats a;
  HalfFloats b;
  HalfFloats c;
  Load<Format, kPacked, kFlush>(warp, op.a, &a);
  Load<Format, kPacked, kFlush>(warp, op.b, &b);
  if constexpr (kArithmetic == Arithmetic::kFma) Load<Format, kPacked, kFlush>(warp, op.c, &c);
  HalfBits result;
  Compute<Format, kArithmetic, kCount>(a, b, c, &result);
  for (int i = 0; i < kCount; ++i) {
    result.values[i] = Finish<Format, kFlush, kLimit>(result.values[i]);
  }
  WriteHalves<kPacked>(warp, op.dst, mask, result);
}

// min, max, neg and abs look at bits only.
template <bool kFlush>
struct SignForm {
  template <typename Format, bool kNegate>
  static uint16_t Apply(uint16_t bits) {
    const uint16_t value = kFlush ? Format::Flush(bits) : bits;
    const uint16_t changed = kNegate ? value ^ 0x8000 : value & 0x7fff;
    return Format::IsNan(bits) ? kNan16 : changed;
  }
};

template <typename Format, bool kNegate, bool kPacked, bool kFlush>
void SignHandler(Warp* warp, const Op& op, uint32_t mask) {
  HalfBits bits;
  ReadHalves<kPacked>(warp, op.a, &bits);
  for (int i = 0; i < kHalfCount<kPacked>; ++i) {
    bits.values[i] = SignForm<kFlush>::template Apply<Format, kNegate>(bits.values[i]);
  }
  WriteHalves<kPacked>(warp, op.dst, mask, bits);
}

// Integers in the order of the numbers; -0 is less than +0.
inline int16_t OrderOf(uint16_t bits) {
  const uint16_t flip = (bits & 0x8000) != 0 ? 0x7fff : 0;
  return static_cast<int16_t>(bits ^ flip);
}

template <typename Format, bool kMax, bool kNan, bool kXorSign>
inline uint16_t Extreme(uint16_t a, uint16_t b) {
  const uint16_t sign = (a ^ b) & 0x8000;
  if constexpr (kXorSign) {
    a &= 0x7fff;
    b &= 0x7fff;
  }
  const bool nan_a = Format::IsNan(a);
  const bool nan_b = Format::IsNan(b);
  const bool take_a = kMax ? OrderOf(a) > OrderOf(b) : OrderOf(a) < OrderOf(b);
  uint16_t result = take_a ? a : b;
  result = nan_a ? b : result;
  result = nan_b ? a : result;
  if constexpr (kXorSign) result = (result & 0x7fff) | sign;
  const bool is_nan = kNan ? nan_a || nan_b : nan_a && nan_b;
  return is_nan ? kNan16 : result;
}

template <typename Format, bool kMax, bool kNan, bool kXorSign, bool kPacked, bool kFlush>
void ExtremeHandler(Warp* warp, const Op& op, uint32_t mask) {
  HalfBits a;
  HalfBits b;
  ReadHalves<kPacked>(warp, op.a, &a);
  ReadHalves<kPacked>(warp, op.b, &b);
  for (int i = 0; i < kHalfCount<kPacked>; ++i) {
    const uint16_t left = kFlush ? Format::Flush(a.values[i]) : a.values[i];
    const uint16_t right = kFlush ? Format::Flush(b.values[i]) : b.values[i];
    a.values[i] = Extreme<Format, kMax, kNan, kXorSign>(left, right);
  }
  WriteHalves<kPacked>(warp, op.dst, mask, a);
}

// The modifiers, and what they select.
struct Form {
  bool packed = false;
  bool bfloat = false;
  bool flush = false;
  Limit limit = Limit::kNone;
  bool nan = false;
  bool xor_sign = false;
};

template <Arithmetic kArithmetic, Limit kLimit>
Handler PickArithmetic(const Form& form) {
  if (form.bfloat) {
    if (form.flush || kLimit == Limit::kSaturate) return nullptr;
    constexpr Limit kAllowed = kLimit == Limit::kRelu ? Limit::kRelu : Limit::kNone;
    return form.packed ? &ArithmeticHandler<BF16Lanes, kArithmetic, true, false, kAllowed>
                       : &ArithmeticHandler<BF16Lanes, kArithmetic, false, false, kAllowed>;
  }
  if (form.flush) {
    return form.packed ? &ArithmeticHandler<F16Lanes, kArithmetic, true, true, kLimit>
                       : &ArithmeticHandler<F16Lanes, kArithmetic, false, true, kLimit>;
  }
  return form.packed ? &ArithmeticHandler<F16Lanes, kArithmetic, true, false, kLimit>
                     : &ArithmeticHandler<F16Lanes, kArithmetic, false, false, kLimit>;
}

template <Arithmetic kArithmetic>
Handler PickLimit(const Form& form) {
  if constexpr (kArithmetic == Arithmetic::kFma) {
    if (form.limit == Limit::kRelu) return PickArithmetic<kArithmetic, Limit::kRelu>(form);
  }
  if (form.limit == Limit::kRelu) return nullptr;
  return form.limit == Limit::kSaturate ? PickArithmetic<kArithmetic, Limit::kSaturate>(form)
                                        : PickArithmetic<kArithmetic, Limit::kNone>(form);
}

template <bool kNegate>
Handler PickSign(const Form& form) {
  if (form.bfloat) {
    if (form.flush) return nullptr;
    return form.packed ? &SignHandler<BF16Lanes, kNegate, true, false>
                       : &SignHandler<BF16Lanes, kNegate, false, false>;
  }
  if (form.flush) {
    return form.packed ? &SignHandler<F16Lanes, kNegate, true, true>
                       : &SignHandler<F16Lanes, kNegate, false, true>;
  }
  return form.packed ? &SignHandler<F16Lanes, kNegate, true, false>
                     : &SignHandler<F16Lanes, kNegate, false, false>;
}

template <bool kMax, bool kNan, bool kXorSign>
Handler PickExtremeFormat(const Form& form) {
  if (form.bfloat) {
    if (form.flush) return nullptr;
    return form.packed ? &ExtremeHandler<BF16Lanes, kMax, kNan, kXorSign, true, false>
                       : &ExtremeHandler<BF16Lanes, kMax, kNan, kXorSign, false, false>;
  }
  if (form.flush) {
    return form.packed ? &ExtremeHandler<F16Lanes, kMax, kNan, kXorSign, true, true>
                       : &ExtremeHandler<F16Lanes, kMax, kNan, kXorSign, false, true>;
  }
  return form.packed ? &ExtremeHandler<F16Lanes, kMax, kNan, kXorSign, true, false>
                     : &ExtremeHandler<F16Lanes, kMax, kNan, kXorSign, false, false>;
}

template <bool kMax>
Handler PickExtreme(const Form& form) {
  if (form.nan) {
    return form.xor_sign ? PickExtremeFormat<kMax, true, true>(form)
                         : PickExtremeFormat<kMax, true, false>(form);
  }
  return form.xor_sign ? PickExtremeFormat<kMax, false, true>(form)
                       : PickExtremeFormat<kMax, false, false>(form);
}

Handler PickHalf(std::string_view mnemonic, const Form& form) {
  if (mnemonic == "add") return PickLimit<Arithmetic::kAdd>(form);
  if (mnemonic == "sub") return PickLimit<Arithmetic::kSubtract>(form);
  if (mnemonic == "mul") return PickLimit<Arithmetic::kMultiply>(form);
  if (mnemonic == "fma") return PickLimit<Arithmetic::kFma>(form);
  if (mnemonic == "neg") return PickSign<true>(form);
  if (mnemonic == "abs") return PickSign<false>(form);
  if (mnemonic == "min") return PickExtreme<false>(form);
  return mnemonic == "max" ? PickExtreme<true>(form) : nullptr;
}

}  // namespace

absl::Status DecodeHalf(const Instruction& instruction, Decoder* decoder, Op* op) {
  const std::string_view mnemonic = instruction.mnemonic;
  const bool sign_only = mnemonic == "neg" || mnemonic == "abs";
  const bool extreme = mnemonic == "min" || mnemonic == "max";
  Modifiers modifiers(instruction);
  Form form;
  const bool rounded = !sign_only && !extreme && modifiers.Take("rn");
  form.flush = modifiers.Take("ftz");
  if (extreme) {
    form.nan = modifiers.Take("NaN");
    form.xor_sign = modifiers.Take("xorsign");
    if (form.xor_sign && !modifiers.Take("abs")) {
      return absl::UnimplementedError(".xorsign without .abs");
    }
  } else if (!sign_only) {
    if (modifiers.Take("sat")) form.limit = Limit::kSaturate;
    if (form.limit == Limit::kNone && modifiers.Take("relu")) form.limit = Limit::kRelu;
  }
  const Type type = modifiers.TakeType();
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  form.packed = type == Type::kF16x2 || type == Type::kBF16x2;
  form.bfloat = type == Type::kBF16 || type == Type::kBF16x2;
  const bool fused = mnemonic == "fma";
  if (!IsHalf(type) || (fused && !rounded)) return UnknownType("this form", type);
  op->handler = PickHalf(mnemonic, form);
  if (op->handler == nullptr) return UnknownType("this form", type);
  const int flops = sign_only || extreme ? 0 : (fused ? 2 : 1);
  SetInfo(decoder, OpClass::kF16, form.packed ? 2 * flops : flops);
  const Type bits = BitsOf(type);
  if (sign_only) return DecodeOperands(instruction, decoder, op, bits, {bits});
  if (fused) return DecodeOperands(instruction, decoder, op, bits, {bits, bits, bits});
  return DecodeOperands(instruction, decoder, op, bits, {bits, bits});
}

}  // namespace assay::emulator
