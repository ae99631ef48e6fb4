// min and max of f32 and f64 (PTX ISA 9.7.3.11, 9.7.3.12). -0 is less than +0.
#include <cstdint>
#include <type_traits>

#include "base/status.h"
#include "emulator/ops/decode.h"
#include "emulator/ops/handlers.h"
#include "emulator/ops/rounding.h"

namespace assay::emulator {
namespace {

template <typename U>
struct Encoding;
template <>
struct Encoding<uint32_t> {
  static constexpr uint32_t kSign = 0x80000000u;
  static constexpr uint32_t kInfinity = 0x7f800000u;
};
template <>
struct Encoding<uint64_t> {
  static constexpr uint64_t kSign = 0x8000'0000'0000'0000u;
  static constexpr uint64_t kInfinity = 0x7ff0'0000'0000'0000u;
};

template <typename U>
inline bool IsNan(U bits) {
  using S = std::make_signed_t<U>;
  return static_cast<S>(bits & ~Encoding<U>::kSign) > static_cast<S>(Encoding<U>::kInfinity);
}

// Integers in the order of the numbers.
template <typename U>
inline std::make_signed_t<U> OrderOf(U bits) {
  using S = std::make_signed_t<U>;
  const U flip = static_cast<S>(bits) < 0 ? static_cast<U>(~Encoding<U>::kSign) : U{0};
  return static_cast<S>(bits ^ flip);
}

// The NaN for a and b, at least one of which is one.
inline uint32_t NanOf(uint32_t, uint32_t) { return kNan32; }
inline uint64_t NanOf(uint64_t a, uint64_t b) {
  return (IsNan(a) ? a : b) | 0x0008'0000'0000'0000u;
}

template <bool kMax, bool kNan, typename U>
inline U Extreme(U a, U b) {
  const bool take_a = kMax ? OrderOf(a) > OrderOf(b) : OrderOf(a) < OrderOf(b);
  const bool nan_a = IsNan(a);
  const bool nan_b = IsNan(b);
  U result = take_a ? a : b;
  result = nan_a ? b : result;
  result = nan_b ? a : result;
  const bool is_nan = kNan ? nan_a || nan_b : nan_a && nan_b;
  return is_nan ? NanOf(a, b) : result;
}

enum class Magnitude { kPlain, kAbsolute, kXorSign };

template <bool kMax, bool kNan, Magnitude kMagnitude, bool kFlush>
struct Extreme32 {
  static uint32_t Prepare(uint32_t bits) {
    if constexpr (kFlush) bits = Flush32(bits);
    return kMagnitude == Magnitude::kPlain ? bits : bits & 0x7fffffffu;
  }
  static uint32_t Apply(uint32_t a, uint32_t b) {
    uint32_t result = Extreme<kMax, kNan>(Prepare(a), Prepare(b));
    if constexpr (kMagnitude == Magnitude::kXorSign) {
      const uint32_t sign = (a ^ b) & 0x80000000u;
      result = IsNan(result) ? result : (result & 0x7fffffffu) | sign;
    }
    return result;
  }
  static uint32_t Apply(uint32_t a, uint32_t b, uint32_t c) {
    return Extreme<kMax, kNan>(Extreme<kMax, kNan>(Prepare(a), Prepare(b)), Prepare(c));
  }
};

template <bool kMax>
struct Extreme64 {
  static uint64_t Apply(uint64_t a, uint64_t b) { return Extreme<kMax, false>(a, b); }
};

struct Form {
  bool max = false;
  bool flush = false;
  bool nan = false;
  Magnitude magnitude = Magnitude::kPlain;
  bool three = false;
};

template <bool kMax, bool kNan, Magnitude kMagnitude, bool kFlush>
Handler PickCount(const Form& form) {
  using Operation = Extreme32<kMax, kNan, kMagnitude, kFlush>;
  if constexpr (kMagnitude != Magnitude::kXorSign) {
    if (form.three) return &TernaryHandler<Operation, uint32_t, uint32_t>;
  }
  if constexpr (kMagnitude != Magnitude::kAbsolute) {
    if (!form.three) return &BinaryHandler<Operation, uint32_t, uint32_t>;
  }
  return nullptr;
}

template <bool kMax, bool kNan, Magnitude kMagnitude>
Handler PickFlush(const Form& form) {
  return form.flush ? PickCount<kMax, kNan, kMagnitude, true>(form)
                    : PickCount<kMax, kNan, kMagnitude, false>(form);
}

template <bool kMax, bool kNan>
Handler PickMagnitude(const Form& form) {
  switch (form.magnitude) {
    case Magnitude::kPlain:
      return PickFlush<kMax, kNan, Magnitude::kPlain>(form);
    case Magnitude::kAbsolute:
      return PickFlush<kMax, kNan, Magnitude::kAbsolute>(form);
    case Magnitude::kXorSign:
      return PickFlush<kMax, kNan, Magnitude::kXorSign>(form);
  }
  return nullptr;
}

template <bool kMax>
Handler Pick(Type type, const Form& form) {
  if (type == Type::kF64) {
    const bool plain =
        !form.flush && !form.nan && form.magnitude == Magnitude::kPlain && !form.three;
    return plain ? &BinaryHandler<Extreme64<kMax>, uint64_t, uint64_t> : nullptr;
  }
  return form.nan ? PickMagnitude<kMax, true>(form) : PickMagnitude<kMax, false>(form);
}

}  // namespace

absl::Status DecodeMinMax(const Instruction& instruction, Decoder* decoder, Op* op) {
  Modifiers modifiers(instruction);
  Form form;
  form.three = instruction.operands.size() == 4;
  form.flush = modifiers.Take("ftz");
  form.nan = modifiers.Take("NaN");
  const bool xor_sign = modifiers.Take("xorsign");
  const bool absolute = modifiers.Take("abs");
  const Type type = modifiers.TakeType();
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  if (xor_sign && !absolute) return absl::UnimplementedError(".xorsign without .abs");
  if (absolute) form.magnitude = xor_sign ? Magnitude::kXorSign : Magnitude::kAbsolute;
  op->handler = instruction.mnemonic == "max" ? Pick<true>(type, form) : Pick<false>(type, form);
  if (op->handler == nullptr) return UnknownType("this form", type);
  SetInfo(decoder, type == Type::kF32 ? OpClass::kF32 : OpClass::kF64);
  if (form.three) return DecodeOperands(instruction, decoder, op, type, {type, type, type});
  return DecodeOperands(instruction, decoder, op, type, {type, type});
}

}  // namespace assay::emulator
