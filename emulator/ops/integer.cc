// Integer arithmetic (PTX ISA 9.7.1), without carries, bit fields and video instructions.
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "base/status.h"
#include "emulator/ops/decode.h"
#include "emulator/ops/handlers.h"
#include "emulator/ops/integer_lanes.h"
#include "emulator/ops/ops.h"

namespace assay::emulator {
namespace {

template <typename T>
struct Add {
  using U = UnsignedOf<T>;
  static U Apply(U a, U b) { return static_cast<U>(a + b); }
};

template <typename T>
struct Subtract {
  using U = UnsignedOf<T>;
  static U Apply(U a, U b) { return static_cast<U>(a - b); }
};

struct AddSaturated {
  static uint32_t Apply(uint32_t a, uint32_t b) {
    return SaturateToS32(int64_t{static_cast<int32_t>(a)} + static_cast<int32_t>(b));
  }
};

struct SubtractSaturated {
  static uint32_t Apply(uint32_t a, uint32_t b) {
    return SaturateToS32(int64_t{static_cast<int32_t>(a)} - static_cast<int32_t>(b));
  }
};

template <typename T>
struct MultiplyLow {
  using U = UnsignedOf<T>;
  static U Apply(U a, U b) { return ProductLow<T>(a, b); }
  static U Apply(U a, U b, U c) { return static_cast<U>(ProductLow<T>(a, b) + c); }
};

template <typename T>
struct MultiplyHigh {
  using U = UnsignedOf<T>;
  static U Apply(U a, U b) { return ProductHigh<T>(a, b); }
  static U Apply(U a, U b, U c) { return static_cast<U>(ProductHigh<T>(a, b) + c); }
};

template <typename T>
struct MultiplyWide {
  using U = UnsignedOf<T>;
  using W = UnsignedOf<Wider<T>>;
  static W Apply(U a, U b) {
    return static_cast<W>(static_cast<W>(static_cast<T>(a)) * static_cast<W>(static_cast<T>(b)));
  }
  static W Apply(U a, U b, W c) { return static_cast<W>(Apply(a, b) + c); }
};

struct MultiplyHighAddSaturated {
  static uint32_t Apply(uint32_t a, uint32_t b, uint32_t c) {
    const int64_t high = static_cast<int32_t>(ProductHigh<int32_t>(a, b));
    return SaturateToS32(high + static_cast<int32_t>(c));
  }
};

// The low 24 bits of a register as a signed or unsigned number.
template <typename T>
int64_t Low24(uint32_t value) {
  if constexpr (std::is_signed_v<T>) return static_cast<int32_t>(value << 8) >> 8;
  return value & 0xffffffu;
}

template <typename T>
struct Multiply24Low {
  static uint32_t Apply(uint32_t a, uint32_t b) {
    return static_cast<uint32_t>(Low24<T>(a) * Low24<T>(b));
  }
  static uint32_t Apply(uint32_t a, uint32_t b, uint32_t c) { return Apply(a, b) + c; }
};

template <typename T>
struct Multiply24High {
  static uint32_t Apply(uint32_t a, uint32_t b) {
    return static_cast<uint32_t>((Low24<T>(a) * Low24<T>(b)) >> 16);
  }
  static uint32_t Apply(uint32_t a, uint32_t b, uint32_t c) { return Apply(a, b) + c; }
};

struct Multiply24HighAddSaturated {
  static uint32_t Apply(uint32_t a, uint32_t b, uint32_t c) {
    const int64_t high = static_cast<int32_t>(Multiply24High<int32_t>::Apply(a, b));
    return SaturateToS32(high + static_cast<int32_t>(c));
  }
};

template <typename T>
struct SumOfDifferences {
  using U = UnsignedOf<T>;
  static U Apply(U a, U b, U c) {
    const bool less = static_cast<T>(a) < static_cast<T>(b);
    return static_cast<U>(c + (less ? b - a : a - b));
  }
};

// Division by zero is left open by PTX; all ones, as the devices give.
template <typename T>
struct Divide {
  using U = UnsignedOf<T>;
  static U Apply(U a, U b) {
    if (b == 0) return static_cast<U>(~U{0});
    if (std::is_signed_v<T> && b == static_cast<U>(~U{0})) return static_cast<U>(U{0} - a);
    return static_cast<U>(static_cast<T>(a) / static_cast<T>(b));
  }
};

template <typename T>
struct Remainder {
  using U = UnsignedOf<T>;
  static U Apply(U a, U b) {
    if (b == 0) return static_cast<U>(~U{0});
    if (std::is_signed_v<T> && b == static_cast<U>(~U{0})) return 0;
    return static_cast<U>(static_cast<T>(a) % static_cast<T>(b));
  }
};

template <typename T>
struct Absolute {
  using U = UnsignedOf<T>;
  static U Apply(U a) { return static_cast<U>(static_cast<T>(a) < 0 ? U{0} - a : a); }
};

template <typename T>
struct Negate {
  using U = UnsignedOf<T>;
  static U Apply(U a) { return static_cast<U>(U{0} - a); }
};

template <typename T>
struct Minimum {
  using U = UnsignedOf<T>;
  static U Apply(U a, U b) { return static_cast<T>(a) < static_cast<T>(b) ? a : b; }
};

template <typename T>
struct Maximum {
  using U = UnsignedOf<T>;
  static U Apply(U a, U b) { return static_cast<T>(a) > static_cast<T>(b) ? a : b; }
};

template <template <typename> class Operation, typename T>
struct NotNegative {
  using U = UnsignedOf<T>;
  static U Apply(U a, U b) {
    const U result = Operation<T>::Apply(a, b);
    return static_cast<T>(result) < 0 ? U{0} : result;
  }
};

// Two 16-bit operations in a 32-bit register.
template <typename Operation>
struct Halves {
  static uint32_t Apply(uint32_t a, uint32_t b) {
    const uint32_t low =
        Operation::Apply(static_cast<uint16_t>(a & 0xffff), static_cast<uint16_t>(b & 0xffff));
    const uint32_t high =
        Operation::Apply(static_cast<uint16_t>(a >> 16), static_cast<uint16_t>(b >> 16));
    return low | high << 16;
  }
};

template <typename Operation>
constexpr Handler k32BitBinary = &BinaryHandler<Operation, uint32_t, uint32_t>;
template <typename Operation>
constexpr Handler k32BitTernary = &TernaryHandler<Operation, uint32_t, uint32_t>;

// The handler for an instruction's type; nullptr for a type that is none of the six.
template <template <typename> class Operation>
Handler PickUnary(Type type) {
  switch (type) {
    case Type::kS16:
      return &UnaryHandler<Operation<int16_t>, uint16_t, uint16_t>;
    case Type::kS32:
      return &UnaryHandler<Operation<int32_t>, uint32_t, uint32_t>;
    case Type::kS64:
      return &UnaryHandler<Operation<int64_t>, uint64_t, uint64_t>;
    default:
      return nullptr;
  }
}

template <template <typename> class Operation>
Handler PickBinary(Type type) {
  switch (type) {
    case Type::kU16:
      return &BinaryHandler<Operation<uint16_t>, uint16_t, uint16_t>;
    case Type::kS16:
      return &BinaryHandler<Operation<int16_t>, uint16_t, uint16_t>;
    case Type::kU32:
      return &BinaryHandler<Operation<uint32_t>, uint32_t, uint32_t>;
    case Type::kS32:
      return &BinaryHandler<Operation<int32_t>, uint32_t, uint32_t>;
    case Type::kU64:
      return &BinaryHandler<Operation<uint64_t>, uint64_t, uint64_t>;
    case Type::kS64:
      return &BinaryHandler<Operation<int64_t>, uint64_t, uint64_t>;
    default:
      return nullptr;
  }
}

template <template <typename> class Operation>
Handler PickTernary(Type type) {
  switch (type) {
    case Type::kU16:
      return &TernaryHandler<Operation<uint16_t>, uint16_t, uint16_t>;
    case Type::kS16:
      return &TernaryHandler<Operation<int16_t>, uint16_t, uint16_t>;
    case Type::kU32:
      return &TernaryHandler<Operation<uint32_t>, uint32_t, uint32_t>;
    case Type::kS32:
      return &TernaryHandler<Operation<int32_t>, uint32_t, uint32_t>;
    case Type::kU64:
      return &TernaryHandler<Operation<uint64_t>, uint64_t, uint64_t>;
    case Type::kS64:
      return &TernaryHandler<Operation<int64_t>, uint64_t, uint64_t>;
    default:
      return nullptr;
  }
}

template <typename T, typename W = UnsignedOf<Wider<T>>>
Handler WideHandler(bool add) {
  using U = UnsignedOf<T>;
  if (add) return &TernaryHandler<MultiplyWide<T>, W, U, U, W>;
  return &BinaryHandler<MultiplyWide<T>, W, U>;
}

Handler PickWide(Type type, bool add) {
  switch (type) {
    case Type::kU16:
      return WideHandler<uint16_t>(add);
    case Type::kS16:
      return WideHandler<int16_t>(add);
    case Type::kU32:
      return WideHandler<uint32_t>(add);
    case Type::kS32:
      return WideHandler<int32_t>(add);
    default:
      return nullptr;
  }
}

Type WideType(Type type) {
  return type == Type::kU16 || type == Type::kS16 ? Type::kB32 : Type::kB64;
}

absl::Status Finish(const Instruction& instruction, Decoder* decoder, Op* op, Type type,
                    std::initializer_list<Type> sources) {
  if (op->handler == nullptr) return UnknownType(instruction.mnemonic, type);
  SetInfo(decoder, OpClass::kInteger);
  return DecodeOperands(instruction, decoder, op, type, sources);
}

// mul, mad and their 24-bit forms.
absl::Status DecodeMultiply(const Instruction& instruction, Decoder* decoder, Op* op) {
  Modifiers modifiers(instruction);
  const bool add = instruction.mnemonic == "mad";
  const bool low = modifiers.Take("lo");
  const bool high = !low && modifiers.Take("hi");
  const bool wide = !low && !high && modifiers.Take("wide");
  const bool saturate = add && high && modifiers.Take("sat");
  const Type type = modifiers.TakeType();
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  if (low) {
    op->handler = add ? PickTernary<MultiplyLow>(type) : PickBinary<MultiplyLow>(type);
  } else if (saturate) {
    op->handler = type == Type::kS32 ? k32BitTernary<MultiplyHighAddSaturated> : nullptr;
  } else if (high) {
    op->handler = add ? PickTernary<MultiplyHigh>(type) : PickBinary<MultiplyHigh>(type);
  } else if (wide) {
    op->handler = PickWide(type, add);
    const Type result = WideType(type);
    if (add) return Finish(instruction, decoder, op, result, {type, type, result});
    return Finish(instruction, decoder, op, result, {type, type});
  }
  if (add) return Finish(instruction, decoder, op, type, {type, type, type});
  return Finish(instruction, decoder, op, type, {type, type});
}

absl::Status DecodeMultiply24(const Instruction& instruction, Decoder* decoder, Op* op) {
  Modifiers modifiers(instruction);
  const bool add = instruction.mnemonic == "mad24";
  const bool low = modifiers.Take("lo");
  const bool high = !low && modifiers.Take("hi");
  const bool saturate = add && high && modifiers.Take("sat");
  const Type type = modifiers.TakeType();
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  const bool is_signed = type == Type::kS32;
  if (!low && !high) return absl::UnimplementedError("a 24-bit product without .lo or .hi");
  if (!is_signed && (type != Type::kU32 || saturate)) {
    return UnknownType(instruction.mnemonic, type);
  }
  if (saturate) {
    op->handler = k32BitTernary<Multiply24HighAddSaturated>;
  } else if (low) {
    using S = Multiply24Low<int32_t>;
    using U = Multiply24Low<uint32_t>;
    op->handler = add ? (is_signed ? k32BitTernary<S> : k32BitTernary<U>)
                      : (is_signed ? k32BitBinary<S> : k32BitBinary<U>);
  } else {
    using S = Multiply24High<int32_t>;
    using U = Multiply24High<uint32_t>;
    op->handler = add ? (is_signed ? k32BitTernary<S> : k32BitTernary<U>)
                      : (is_signed ? k32BitBinary<S> : k32BitBinary<U>);
  }
  if (add) return Finish(instruction, decoder, op, type, {type, type, type});
  return Finish(instruction, decoder, op, type, {type, type});
}

Handler PickSaturated(std::string_view mnemonic, Type type) {
  if (type != Type::kS32) return nullptr;
  if (mnemonic == "add") return k32BitBinary<AddSaturated>;
  return mnemonic == "sub" ? k32BitBinary<SubtractSaturated> : nullptr;
}

template <template <typename> class Operation>
Handler PickMinMax(Type type, bool relu) {
  if (type == Type::kU16x2) return relu ? nullptr : k32BitBinary<Halves<Operation<uint16_t>>>;
  if (type == Type::kS16x2) {
    return relu ? k32BitBinary<Halves<NotNegative<Operation, int16_t>>>
                : k32BitBinary<Halves<Operation<int16_t>>>;
  }
  if (!relu) return PickBinary<Operation>(type);
  return type == Type::kS32 ? k32BitBinary<NotNegative<Operation, int32_t>> : nullptr;
}

Handler PickPlainBinary(std::string_view mnemonic, Type type) {
  if (type == Type::kU16x2 || type == Type::kS16x2) {
    return mnemonic == "add" ? k32BitBinary<Halves<Add<uint16_t>>> : nullptr;
  }
  if (mnemonic == "add") return PickBinary<Add>(type);
  if (mnemonic == "sub") return PickBinary<Subtract>(type);
  if (mnemonic == "div") return PickBinary<Divide>(type);
  return mnemonic == "rem" ? PickBinary<Remainder>(type) : nullptr;
}

absl::Status DecodeSumOfDifferences(const Instruction& instruction, Decoder* decoder, Op* op) {
  Modifiers modifiers(instruction);
  const Type type = modifiers.TakeType();
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  op->handler = PickTernary<SumOfDifferences>(type);
  return Finish(instruction, decoder, op, type, {type, type, type});
}

}  // namespace

absl::Status DecodeInteger(const Instruction& instruction, Decoder* decoder, Op* op) {
  const std::string_view mnemonic = instruction.mnemonic;
  if (mnemonic == "mul" || mnemonic == "mad") return DecodeMultiply(instruction, decoder, op);
  Modifiers modifiers(instruction);
  const bool saturate = modifiers.Take("sat");
  const bool relu = !saturate && modifiers.Take("relu");
  const Type type = modifiers.TakeType();
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  if (mnemonic == "min" && !saturate) {
    op->handler = PickMinMax<Minimum>(type, relu);
  } else if (mnemonic == "max" && !saturate) {
    op->handler = PickMinMax<Maximum>(type, relu);
  } else if (saturate) {
    op->handler = PickSaturated(mnemonic, type);
  } else if (relu) {
    op->handler = nullptr;
  } else if (mnemonic == "neg") {
    op->handler = PickUnary<Negate>(type);
    return Finish(instruction, decoder, op, type, {type});
  } else if (mnemonic == "abs") {
    op->handler = PickUnary<Absolute>(type);
    return Finish(instruction, decoder, op, type, {type});
  } else {
    op->handler = PickPlainBinary(mnemonic, type);
  }
  return Finish(instruction, decoder, op, type, {type, type});
}

void AddIntegerOps(OpTable* table) {
  table->Add("rem", DecodeInteger);
  table->Add("mul24", DecodeMultiply24);
  table->Add("mad24", DecodeMultiply24);
  table->Add("sad", DecodeSumOfDifferences);
  table->Add("addc", DecodeCarry);
  table->Add("subc", DecodeCarry);
  table->Add("madc", DecodeCarry);
}

}  // namespace assay::emulator
