// f32 and f64 arithmetic that rounds as IEEE 754 says (PTX ISA 9.7.3), testp and copysign.
//
// Every f32 NaN that comes out is 0x7fffffff. An f64 NaN is the first NaN operand, made quiet, or
// 0xfff8000000000000 where there is none. .ftz flushes subnormal operands, and results that are
// subnormal once rounded.
#include <immintrin.h>

#include <cstdint>
#include <string_view>
#include <type_traits>

#include "base/status.h"
#include "emulator/ops/decode.h"
#include "emulator/ops/handlers.h"
#include "emulator/ops/ops.h"
#include "emulator/ops/rounding.h"

namespace assay::emulator {
namespace {

enum class Arithmetic { kAdd, kSubtract, kMultiply, kFma, kDivide, kReciprocal, kSquareRoot };

template <Arithmetic kArithmetic>
constexpr int kSources =
    kArithmetic == Arithmetic::kFma                                                    ? 3
    : kArithmetic == Arithmetic::kReciprocal || kArithmetic == Arithmetic::kSquareRoot ? 1
                                                                                       : 2;

// The builtin of the C library would look at errno.
inline float SquareRoot(float a) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(a))); }
inline double SquareRoot(double a) {
  const __m128d value = _mm_set_sd(a);
  return _mm_cvtsd_f64(_mm_sqrt_sd(value, value));
}
inline float Fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double Fused(double a, double b, double c) { return __builtin_fma(a, b, c); }

template <Arithmetic kArithmetic, typename F>
inline F Compute(F a, F b, F c) {
  if constexpr (kArithmetic == Arithmetic::kAdd) return a + b;
  if constexpr (kArithmetic == Arithmetic::kSubtract) return a - b;
  if constexpr (kArithmetic == Arithmetic::kMultiply) return a * b;
  if constexpr (kArithmetic == Arithmetic::kFma) return Fused(a, b, c);
  if constexpr (kArithmetic == Arithmetic::kDivide) return a / b;
  if constexpr (kArithmetic == Arithmetic::kReciprocal) return F{1} / a;
  if constexpr (kArithmetic == Arithmetic::kSquareRoot) return SquareRoot(a);
}

template <bool kFlush, bool kSaturate>
inline uint32_t Finish32(float value) {
  if constexpr (kSaturate) value = Saturate(value);
  uint32_t bits = BitsOfFloat(value);
  if constexpr (!kSaturate) bits = value != value ? kNan32 : bits;
  return kFlush ? Flush32(bits) : bits;
}

template <Arithmetic kArithmetic, bool kFlush, bool kSaturate>
inline void Run32(Warp* warp, const Op& op, uint32_t mask) {
  constexpr int kCount = kSources<kArithmetic>;
  uint32_t* const to = Lanes<uint32_t>(warp, op.dst);
  const uint32_t* const a = Lanes<uint32_t>(warp, op.a);
  const uint32_t* const b = kCount > 1 ? Lanes<uint32_t>(warp, op.b) : a;
  const uint32_t* const c = kCount > 2 ? Lanes<uint32_t>(warp, op.c) : a;
  EachLane(mask, [=](int i) {
    const float left = FloatOf(kFlush ? Flush32(a[i]) : a[i]);
    const float right = FloatOf(kFlush ? Flush32(b[i]) : b[i]);
    const float third = FloatOf(kFlush ? Flush32(c[i]) : c[i]);
    to[i] = Finish32<kFlush, kSaturate>(Compute<kArithmetic>(left, right, third));
  });
}

template <Arithmetic kArithmetic, bool kFlush, bool kSaturate, bool kDirected>
void Handler32(Warp* warp, const Op& op, uint32_t mask) {
  if constexpr (kDirected) {
    const RoundingScope scope(op.extra);
    Run32<kArithmetic, kFlush, kSaturate>(warp, op, mask);
  } else {
    Run32<kArithmetic, kFlush, kSaturate>(warp, op, mask);
  }
}

inline bool IsNan64(uint64_t bits) {
  return static_cast<int64_t>(bits & 0x7fff'ffff'ffff'ffffu) > 0x7ff0'0000'0000'0000;
}
inline uint64_t Quiet64(uint64_t bits) { return bits | 0x0008'0000'0000'0000u; }

template <Arithmetic kArithmetic>
inline void Run64(Warp* warp, const Op& op, uint32_t mask) {
  constexpr int kCount = kSources<kArithmetic>;
  uint64_t* const to = Lanes<uint64_t>(warp, op.dst);
  const uint64_t* const a = Lanes<uint64_t>(warp, op.a);
  const uint64_t* const b = kCount > 1 ? Lanes<uint64_t>(warp, op.b) : a;
  const uint64_t* const c = kCount > 2 ? Lanes<uint64_t>(warp, op.c) : a;
  EachLane(mask, [=](int i) {
    const uint64_t left = a[i];
    const uint64_t right = b[i];
    const uint64_t third = c[i];
    uint64_t bits =
        BitsOfDouble(Compute<kArithmetic>(DoubleOf(left), DoubleOf(right), DoubleOf(third)));
    if constexpr (kCount > 2) bits = IsNan64(third) ? Quiet64(third) : bits;
    if constexpr (kCount > 1) bits = IsNan64(right) ? Quiet64(right) : bits;
    to[i] = IsNan64(left) ? Quiet64(left) : bits;
  });
}

template <Arithmetic kArithmetic, bool kDirected>
void Handler64(Warp* warp, const Op& op, uint32_t mask) {
  if constexpr (kDirected) {
    const RoundingScope scope(op.extra);
    Run64<kArithmetic>(warp, op, mask);
  } else {
    Run64<kArithmetic>(warp, op, mask);
  }
}

struct Form {
  Rounding rounding = Rounding::kNearest;
  bool rounded = false;  // the modifier was there
  bool flush = false;
  bool saturate = false;
};

template <Arithmetic kArithmetic, bool kFlush, bool kSaturate>
Handler Pick32(bool directed) {
  return directed ? &Handler32<kArithmetic, kFlush, kSaturate, true>
                  : &Handler32<kArithmetic, kFlush, kSaturate, false>;
}

template <Arithmetic kArithmetic, bool kMaySaturate>
Handler Pick(Type type, const Form& form) {
  const bool directed = form.rounding != Rounding::kNearest;
  if (type == Type::kF64) {
    if (form.flush || form.saturate) return nullptr;
    return directed ? &Handler64<kArithmetic, true> : &Handler64<kArithmetic, false>;
  }
  if constexpr (kMaySaturate) {
    if (form.saturate) {
      return form.flush ? Pick32<kArithmetic, true, true>(directed)
                        : Pick32<kArithmetic, false, true>(directed);
    }
  }
  if (form.saturate) return nullptr;
  return form.flush ? Pick32<kArithmetic, true, false>(directed)
                    : Pick32<kArithmetic, false, false>(directed);
}

Handler PickArithmetic(std::string_view mnemonic, Type type, const Form& form) {
  if (mnemonic == "add") return Pick<Arithmetic::kAdd, true>(type, form);
  if (mnemonic == "sub") return Pick<Arithmetic::kSubtract, true>(type, form);
  if (mnemonic == "mul") return Pick<Arithmetic::kMultiply, true>(type, form);
  // These have no default rounding.
  if (!form.rounded) return nullptr;
  if (mnemonic == "fma" || mnemonic == "mad") return Pick<Arithmetic::kFma, true>(type, form);
  if (mnemonic == "div") return Pick<Arithmetic::kDivide, false>(type, form);
  if (mnemonic == "rcp") return Pick<Arithmetic::kReciprocal, false>(type, form);
  return mnemonic == "sqrt" ? Pick<Arithmetic::kSquareRoot, false>(type, form) : nullptr;
}

template <bool kFlush>
struct Negate32 {
  static uint32_t Apply(uint32_t a) {
    const uint32_t bits = kFlush ? Flush32(a) : a;
    return (a & 0x7fffffffu) > 0x7f800000u ? kNan32 : bits ^ 0x80000000u;
  }
};
template <bool kFlush>
struct Absolute32 {
  static uint32_t Apply(uint32_t a) {
    const uint32_t bits = kFlush ? Flush32(a) : a;
    return (a & 0x7fffffffu) > 0x7f800000u ? kNan32 : bits & 0x7fffffffu;
  }
};
struct Negate64 {
  static uint64_t Apply(uint64_t a) { return a ^ 0x8000'0000'0000'0000u; }
};
// PTX ISA 9.7.3.9: NaN passes through unchanged.
struct Absolute64 {
  static uint64_t Apply(uint64_t a) { return IsNan64(a) ? a : a & 0x7fff'ffff'ffff'ffffu; }
};

Handler PickSign(std::string_view mnemonic, Type type, bool flush) {
  const bool negate = mnemonic == "neg";
  if (type == Type::kF64) {
    if (flush) return nullptr;
    return negate ? &UnaryHandler<Negate64, uint64_t, uint64_t>
                  : &UnaryHandler<Absolute64, uint64_t, uint64_t>;
  }
  if (flush) {
    return negate ? &UnaryHandler<Negate32<true>, uint32_t, uint32_t>
                  : &UnaryHandler<Absolute32<true>, uint32_t, uint32_t>;
  }
  return negate ? &UnaryHandler<Negate32<false>, uint32_t, uint32_t>
                : &UnaryHandler<Absolute32<false>, uint32_t, uint32_t>;
}

template <typename U>
struct CopySign {
  static U Apply(U sign, U value) {
    constexpr U kSign = U{1} << (8 * sizeof(U) - 1);
    return (sign & kSign) | (value & ~kSign);
  }
};

absl::Status DecodeCopySign(const Instruction& instruction, Decoder* decoder, Op* op) {
  Modifiers modifiers(instruction);
  const Type type = modifiers.TakeType();
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  if (!IsFloat(type)) return UnknownType("copysign", type);
  op->handler = type == Type::kF32 ? &BinaryHandler<CopySign<uint32_t>, uint32_t, uint32_t>
                                   : &BinaryHandler<CopySign<uint64_t>, uint64_t, uint64_t>;
  SetInfo(decoder, type == Type::kF32 ? OpClass::kF32 : OpClass::kF64);
  return DecodeOperands(instruction, decoder, op, type, {type, type});
}

// Classes of numbers that testp asks for, as bits.
constexpr uint32_t kClassNan = 1;
constexpr uint32_t kClassInfinite = 2;
constexpr uint32_t kClassNormal = 4;  // and zero
constexpr uint32_t kClassSubnormal = 8;

template <typename U>
inline uint32_t ClassOf(U bits) {
  constexpr U kInfinity =
      static_cast<U>(sizeof(U) == 4 ? 0x7f800000u : uint64_t{0x7ff0'0000'0000'0000u});
  const U magnitude = bits & (~U{0} >> 1);
  if (magnitude > kInfinity) return kClassNan;
  if (magnitude == kInfinity) return kClassInfinite;
  if (magnitude == 0 || (magnitude & kInfinity) != 0) return kClassNormal;
  return kClassSubnormal;
}

template <typename U>
void TestHandler(Warp* warp, const Op& op, uint32_t mask) {
  const U* const a = Lanes<U>(warp, op.a);
  uint32_t found = 0;
  for (int i = 0; i < kLanes; ++i) {
    found |= static_cast<uint32_t>((ClassOf(a[i]) & op.extra) != 0) << i;
  }
  SetPredicate(warp, op.dst, mask, found);
}

struct Test {
  std::string_view name;
  uint32_t classes;
};
constexpr Test kTests[] = {
    {"finite", kClassNormal | kClassSubnormal},
    {"infinite", kClassInfinite},
    {"number", kClassInfinite | kClassNormal | kClassSubnormal},
    {"notanumber", kClassNan},
    {"normal", kClassNormal},
    {"subnormal", kClassSubnormal},
};

absl::Status DecodeTest(const Instruction& instruction, Decoder* decoder, Op* op) {
  Modifiers modifiers(instruction);
  for (const Test& test : kTests) {
    if (op->extra == 0 && modifiers.Take(test.name)) op->extra = test.classes;
  }
  const Type type = modifiers.TakeType();
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  if (op->extra == 0 || !IsFloat(type)) return UnknownType("testp", type);
  ASSAY_RETURN_IF_ERROR(CheckOperandCount(instruction, 2, 2));
  op->handler = type == Type::kF32 ? &TestHandler<uint32_t> : &TestHandler<uint64_t>;
  SetInfo(decoder, OpClass::kOther);
  ASSAY_ASSIGN_OR_RETURN(op->dst, decoder->PredicateDestination(instruction.operands[0]));
  ASSAY_ASSIGN_OR_RETURN(op->a, decoder->Source(instruction.operands[1], type));
  return absl::OkStatus();
}

}  // namespace

absl::Status DecodeFloat(const Instruction& instruction, Decoder* decoder, Op* op) {
  const std::string_view mnemonic = instruction.mnemonic;
  const bool sign_only = mnemonic == "neg" || mnemonic == "abs";
  Modifiers modifiers(instruction);
  Form form;
  form.rounded = !sign_only && TakeRounding(&modifiers, &form.rounding);
  form.flush = modifiers.Take("ftz");
  form.saturate = !sign_only && modifiers.Take("sat");
  const Type type = modifiers.TakeType();
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  op->handler =
      sign_only ? PickSign(mnemonic, type, form.flush) : PickArithmetic(mnemonic, type, form);
  if (op->handler == nullptr) return UnknownType("this form", type);
  op->extra = ControlBits(form.rounding);
  const bool fused = mnemonic == "fma" || mnemonic == "mad";
  SetInfo(decoder, type == Type::kF32 ? OpClass::kF32 : OpClass::kF64,
          sign_only ? 0 : (fused ? 2 : 1));
  if (sign_only || mnemonic == "rcp" || mnemonic == "sqrt") {
    return DecodeOperands(instruction, decoder, op, type, {type});
  }
  if (fused) return DecodeOperands(instruction, decoder, op, type, {type, type, type});
  return DecodeOperands(instruction, decoder, op, type, {type, type});
}

void AddFloatOps(OpTable* table) {
  table->Add("copysign", DecodeCopySign);
  table->Add("testp", DecodeTest);
}

}  // namespace assay::emulator
