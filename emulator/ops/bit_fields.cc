// Bit fields and counts of bits (PTX ISA 9.7.1.14 to 9.7.1.22).
#include <algorithm>
#include <bit>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "base/status.h"
#include "emulator/ops/decode.h"
#include "emulator/ops/handlers.h"
#include "emulator/ops/ops.h"

namespace assay::emulator {
namespace {

// `count` ones from the lowest bit on; all of them from the width on.
template <typename U>
inline U LowOnes(uint32_t count) {
  constexpr uint32_t kBits = 8 * sizeof(U);
  return count >= kBits ? static_cast<U>(~U{0}) : static_cast<U>((U{1} << count) - 1);
}

template <typename T>
struct ExtractField {
  using U = UnsignedOf<T>;
  static U Apply(U a, uint32_t position, uint32_t length) {
    constexpr uint32_t kBits = 8 * sizeof(U);
    position &= 0xff;
    length &= 0xff;
    if (length == 0) return 0;
    const U ones = LowOnes<U>(length);
    const U field = position < kBits ? static_cast<U>(a >> position) : U{0};
    if constexpr (std::is_signed_v<T>) {
      const uint32_t sign_bit = std::min(position + length - 1, kBits - 1);
      const bool sign = (a >> sign_bit & 1) != 0;
      const uint32_t there = position < kBits ? std::min(length, kBits - position) : 0;
      const U kept = LowOnes<U>(there);
      return static_cast<U>((field & kept) | (sign ? static_cast<U>(~kept) : U{0}));
    }
    return field & ones;
  }
};

// f = b with a field of a.
template <typename U>
void InsertFieldHandler(Warp* warp, const Op& op, uint32_t mask) {
  constexpr uint32_t kBits = 8 * sizeof(U);
  U* const to = Lanes<U>(warp, op.dst);
  const U* const a = Lanes<U>(warp, op.a);
  const U* const b = Lanes<U>(warp, op.b);
  const uint32_t* const positions = Lanes<uint32_t>(warp, op.c);
  const uint32_t* const lengths = Lanes<uint32_t>(warp, op.d);
  EachLane(mask, [=](int i) {
    const uint32_t position = positions[i] & 0xff;
    const U ones = LowOnes<U>(lengths[i] & 0xff);
    const U field = position < kBits ? static_cast<U>(ones << position) : U{0};
    const U inserted = static_cast<U>(a[i] << (position & (kBits - 1)));
    to[i] = (b[i] & ~field) | (inserted & field);
  });
}

template <typename T, bool kShiftAmount>
struct FindBit {
  using U = UnsignedOf<T>;
  static uint32_t Apply(U a) {
    constexpr int kBits = 8 * sizeof(U);
    if (std::is_signed_v<T> && static_cast<T>(a) < 0) a = ~a;
    if (a == 0) return 0xffffffffu;
    const int zeros = std::countl_zero(a);
    return static_cast<uint32_t>(kShiftAmount ? zeros : kBits - 1 - zeros);
  }
};

template <typename U>
struct ReverseBits {
  static U Apply(U a) {
    constexpr U kPairs = static_cast<U>(0x5555555555555555u);
    constexpr U kFours = static_cast<U>(0x3333333333333333u);
    constexpr U kBytes = static_cast<U>(0x0f0f0f0f0f0f0f0fu);
    a = (a >> 1 & kPairs) | (a & kPairs) << 1;
    a = (a >> 2 & kFours) | (a & kFours) << 2;
    a = (a >> 4 & kBytes) | (a & kBytes) << 4;
    if constexpr (sizeof(U) == 4) return __builtin_bswap32(a);
    return static_cast<U>(__builtin_bswap64(a));
  }
};

template <typename U>
struct LeadingZeros {
  static uint32_t Apply(U a) { return static_cast<uint32_t>(std::countl_zero(a)); }
};

template <typename U>
struct CountOnes {
  static uint32_t Apply(U a) { return static_cast<uint32_t>(std::popcount(a)); }
};

template <bool kSigned, bool kClamp>
struct Extend {
  static uint32_t Apply(uint32_t a, uint32_t bits) {
    if (kClamp && bits >= 32) return a;
    bits &= 31;
    if (bits == 0) return 0;
    const uint32_t top = a << (32 - bits);
    if constexpr (kSigned) return static_cast<uint32_t>(static_cast<int32_t>(top) >> (32 - bits));
    return top >> (32 - bits);
  }
};

template <bool kClamp>
struct MakeMask {
  static uint32_t Apply(uint32_t position, uint32_t width) {
    if (kClamp && position >= 32) return 0;
    position &= 31;
    const uint32_t ones = kClamp ? LowOnes<uint32_t>(width) : LowOnes<uint32_t>(width & 31);
    return ones << position;
  }
};

// A base beyond 31 is left open by PTX: nothing is found.
struct FindNthSet {
  static uint32_t Apply(uint32_t bits, uint32_t base, uint32_t offset) {
    if (base > 31) return 0xffffffffu;
    const int32_t steps = static_cast<int32_t>(offset);
    if (steps == 0) return (bits >> base & 1) != 0 ? base : 0xffffffffu;
    const int direction = steps > 0 ? 1 : -1;
    int64_t left = (steps > 0 ? int64_t{steps} : -int64_t{steps}) - 1;
    for (int at = static_cast<int>(base); at >= 0 && at < 32; at += direction) {
      if ((bits >> at & 1) == 0) continue;
      if (left == 0) return static_cast<uint32_t>(at);
      --left;
    }
    return 0xffffffffu;
  }
};

absl::Status DecodeExtract(const Instruction& instruction, Decoder* decoder, Op* op) {
  Modifiers modifiers(instruction);
  const Type type = modifiers.TakeType();
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  switch (type) {
    case Type::kU32:
      op->handler = &TernaryHandler<ExtractField<uint32_t>, uint32_t, uint32_t>;
      break;
    case Type::kS32:
      op->handler = &TernaryHandler<ExtractField<int32_t>, uint32_t, uint32_t>;
      break;
    case Type::kU64:
      op->handler = &TernaryHandler<ExtractField<uint64_t>, uint64_t, uint64_t, uint32_t>;
      break;
    case Type::kS64:
      op->handler = &TernaryHandler<ExtractField<int64_t>, uint64_t, uint64_t, uint32_t>;
      break;
    default:
      return UnknownType("bfe", type);
  }
  SetInfo(decoder, OpClass::kInteger);
  return DecodeOperands(instruction, decoder, op, type, {type, Type::kU32, Type::kU32});
}

absl::Status DecodeInsert(const Instruction& instruction, Decoder* decoder, Op* op) {
  Modifiers modifiers(instruction);
  const Type type = modifiers.TakeType();
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  if (type != Type::kB32 && type != Type::kB64) return UnknownType("bfi", type);
  op->handler = type == Type::kB32 ? &InsertFieldHandler<uint32_t> : &InsertFieldHandler<uint64_t>;
  SetInfo(decoder, OpClass::kInteger);
  return DecodeOperands(instruction, decoder, op, type, {type, type, Type::kU32, Type::kU32});
}

template <bool kShiftAmount>
Handler PickFind(Type type) {
  switch (type) {
    case Type::kU32:
      return &UnaryHandler<FindBit<uint32_t, kShiftAmount>, uint32_t, uint32_t>;
    case Type::kS32:
      return &UnaryHandler<FindBit<int32_t, kShiftAmount>, uint32_t, uint32_t>;
    case Type::kU64:
      return &UnaryHandler<FindBit<uint64_t, kShiftAmount>, uint32_t, uint64_t>;
    case Type::kS64:
      return &UnaryHandler<FindBit<int64_t, kShiftAmount>, uint32_t, uint64_t>;
    default:
      return nullptr;
  }
}

absl::Status DecodeFind(const Instruction& instruction, Decoder* decoder, Op* op) {
  Modifiers modifiers(instruction);
  const bool shift_amount = modifiers.Take("shiftamt");
  const Type type = modifiers.TakeType();
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  op->handler = shift_amount ? PickFind<true>(type) : PickFind<false>(type);
  if (op->handler == nullptr) return UnknownType("bfind", type);
  SetInfo(decoder, OpClass::kInteger);
  return DecodeOperands(instruction, decoder, op, Type::kU32, {type});
}

absl::Status DecodeCount(const Instruction& instruction, Decoder* decoder, Op* op) {
  const std::string_view mnemonic = instruction.mnemonic;
  Modifiers modifiers(instruction);
  const Type type = modifiers.TakeType();
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  if (type != Type::kB32 && type != Type::kB64) return UnknownType(mnemonic, type);
  const bool wide = type == Type::kB64;
  SetInfo(decoder, OpClass::kInteger);
  if (mnemonic == "brev") {
    op->handler = wide ? &UnaryHandler<ReverseBits<uint64_t>, uint64_t, uint64_t>
                       : &UnaryHandler<ReverseBits<uint32_t>, uint32_t, uint32_t>;
    return DecodeOperands(instruction, decoder, op, type, {type});
  }
  if (mnemonic == "clz") {
    op->handler = wide ? &UnaryHandler<LeadingZeros<uint64_t>, uint32_t, uint64_t>
                       : &UnaryHandler<LeadingZeros<uint32_t>, uint32_t, uint32_t>;
  } else {
    op->handler = wide ? &UnaryHandler<CountOnes<uint64_t>, uint32_t, uint64_t>
                       : &UnaryHandler<CountOnes<uint32_t>, uint32_t, uint32_t>;
  }
  return DecodeOperands(instruction, decoder, op, Type::kU32, {type});
}

// szext and bmsk.
absl::Status DecodeExtend(const Instruction& instruction, Decoder* decoder, Op* op) {
  const bool extend = instruction.mnemonic == "szext";
  Modifiers modifiers(instruction);
  const bool clamp = modifiers.Take("clamp");
  if (!clamp && !modifiers.Take("wrap")) {
    return absl::UnimplementedError("neither .clamp nor .wrap");
  }
  const Type type = modifiers.TakeType();
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  if (!extend && type == Type::kB32) {
    op->handler = clamp ? &BinaryHandler<MakeMask<true>, uint32_t, uint32_t>
                        : &BinaryHandler<MakeMask<false>, uint32_t, uint32_t>;
  } else if (extend && type == Type::kU32) {
    op->handler = clamp ? &BinaryHandler<Extend<false, true>, uint32_t, uint32_t>
                        : &BinaryHandler<Extend<false, false>, uint32_t, uint32_t>;
  } else if (extend && type == Type::kS32) {
    op->handler = clamp ? &BinaryHandler<Extend<true, true>, uint32_t, uint32_t>
                        : &BinaryHandler<Extend<true, false>, uint32_t, uint32_t>;
  } else {
    return UnknownType(instruction.mnemonic, type);
  }
  SetInfo(decoder, OpClass::kInteger);
  return DecodeOperands(instruction, decoder, op, Type::kB32, {Type::kB32, Type::kB32});
}

absl::Status DecodeFindNth(const Instruction& instruction, Decoder* decoder, Op* op) {
  Modifiers modifiers(instruction);
  const Type type = modifiers.TakeType();
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  if (type != Type::kB32) return UnknownType("fns", type);
  op->handler = &TernaryHandler<FindNthSet, uint32_t, uint32_t>;
  SetInfo(decoder, OpClass::kInteger);
  return DecodeOperands(instruction, decoder, op, Type::kB32, {Type::kB32, Type::kB32, Type::kS32});
}

}  // namespace

void AddBitFieldOps(OpTable* table) {
  table->Add("bfe", DecodeExtract);
  table->Add("bfi", DecodeInsert);
  table->Add("bfind", DecodeFind);
  for (const std::string_view mnemonic : {"brev", "clz", "popc"}) {
    table->Add(mnemonic, DecodeCount);
  }
  table->Add("szext", DecodeExtend);
  table->Add("bmsk", DecodeExtend);
  table->Add("fns", DecodeFindNth);
}

}  // namespace assay::emulator
