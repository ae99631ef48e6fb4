// Logic, shifts and permutes (PTX ISA 9.7.8, 9.7.9.7).
#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "base/status.h"
#include "emulator/ops/decode.h"
#include "emulator/ops/handlers.h"
#include "emulator/ops/ops.h"

namespace assay::emulator {
namespace {

template <typename U>
struct And {
  static U Apply(U a, U b) { return a & b; }
};
template <typename U>
struct Or {
  static U Apply(U a, U b) { return a | b; }
};
template <typename U>
struct Xor {
  static U Apply(U a, U b) { return a ^ b; }
};
template <typename U>
struct Not {
  static U Apply(U a) { return static_cast<U>(~a); }
};
template <typename U>
struct LogicalNot {
  static U Apply(U a) { return a == 0 ? 1 : 0; }
};

// Shift amounts beyond the width are taken as the width.
template <typename T>
struct ShiftLeft {
  using U = UnsignedOf<T>;
  static U Apply(U a, uint32_t amount) {
    constexpr uint32_t kBits = 8 * sizeof(U);
    const U shifted = static_cast<U>(a << (amount & (kBits - 1)));
    return amount < kBits ? shifted : U{0};
  }
};
template <typename T>
struct ShiftRight {
  using U = UnsignedOf<T>;
  static U Apply(U a, uint32_t amount) {
    constexpr uint32_t kBits = 8 * sizeof(U);
    if constexpr (std::is_signed_v<T>) {
      return static_cast<U>(static_cast<T>(a) >> std::min(amount, kBits - 1));
    } else {
      const U shifted = static_cast<U>(a >> (amount & (kBits - 1)));
      return amount < kBits ? shifted : U{0};
    }
  }
};

template <bool kLeft, bool kClamp>
struct FunnelShift {
  static uint32_t Apply(uint32_t low, uint32_t high, uint32_t amount) {
    const uint64_t both = uint64_t{high} << 32 | low;
    const uint32_t n = kClamp ? std::min(amount, 32u) : amount & 31;
    return static_cast<uint32_t>(kLeft ? both << n >> 32 : both >> n);
  }
};

template <typename U, template <typename> class Operation>
constexpr Handler kBinary = &BinaryHandler<Operation<U>, U, U>;
template <typename U, template <typename> class Operation>
constexpr Handler kUnary = &UnaryHandler<Operation<U>, U, U>;

template <template <typename> class Operation>
Handler PickBinary(Type type) {
  switch (type) {
    case Type::kB16:
      return kBinary<uint16_t, Operation>;
    case Type::kB32:
      return kBinary<uint32_t, Operation>;
    case Type::kB64:
      return kBinary<uint64_t, Operation>;
    default:
      return nullptr;
  }
}

template <template <typename> class Operation>
Handler PickUnary(Type type) {
  switch (type) {
    case Type::kB16:
      return kUnary<uint16_t, Operation>;
    case Type::kB32:
      return kUnary<uint32_t, Operation>;
    case Type::kB64:
      return kUnary<uint64_t, Operation>;
    default:
      return nullptr;
  }
}

template <typename T, template <typename> class Operation>
constexpr Handler kShift = &BinaryHandler<Operation<T>, UnsignedOf<T>, UnsignedOf<T>, uint32_t>;

template <template <typename> class Operation>
Handler PickShift(Type type) {
  switch (type) {
    case Type::kB16:
    case Type::kU16:
      return kShift<uint16_t, Operation>;
    case Type::kS16:
      return kShift<int16_t, Operation>;
    case Type::kB32:
    case Type::kU32:
      return kShift<uint32_t, Operation>;
    case Type::kS32:
      return kShift<int32_t, Operation>;
    case Type::kB64:
    case Type::kU64:
      return kShift<uint64_t, Operation>;
    case Type::kS64:
      return kShift<int64_t, Operation>;
    default:
      return nullptr;
  }
}

absl::Status DecodeLogic(const Instruction& instruction, Decoder* decoder, Op* op) {
  const std::string_view mnemonic = instruction.mnemonic;
  Modifiers modifiers(instruction);
  const Type type = modifiers.TakeType();
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  if (type == Type::kPred && mnemonic != "cnot") {
    return DecodePredicateLogic(instruction, decoder, op);
  }
  if (mnemonic == "and") op->handler = PickBinary<And>(type);
  if (mnemonic == "or") op->handler = PickBinary<Or>(type);
  if (mnemonic == "xor") op->handler = PickBinary<Xor>(type);
  if (mnemonic == "not") op->handler = PickUnary<Not>(type);
  if (mnemonic == "cnot") op->handler = PickUnary<LogicalNot>(type);
  if (op->handler == nullptr) return UnknownType(mnemonic, type);
  SetInfo(decoder, OpClass::kInteger);
  if (mnemonic == "not" || mnemonic == "cnot") {
    return DecodeOperands(instruction, decoder, op, type, {type});
  }
  return DecodeOperands(instruction, decoder, op, type, {type, type});
}

absl::Status DecodeShift(const Instruction& instruction, Decoder* decoder, Op* op) {
  const bool left = instruction.mnemonic == "shl";
  Modifiers modifiers(instruction);
  const Type type = modifiers.TakeType();
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  if (!left || BitsOf(type) == type) {
    op->handler = left ? PickShift<ShiftLeft>(type) : PickShift<ShiftRight>(type);
  }
  if (op->handler == nullptr) return UnknownType(instruction.mnemonic, type);
  SetInfo(decoder, OpClass::kInteger);
  return DecodeOperands(instruction, decoder, op, type, {type, Type::kU32});
}

absl::Status DecodeFunnelShift(const Instruction& instruction, Decoder* decoder, Op* op) {
  Modifiers modifiers(instruction);
  const bool left = modifiers.Take("l");
  if (!left && !modifiers.Take("r")) return absl::UnimplementedError("shf without .l or .r");
  const bool clamp = modifiers.Take("clamp");
  if (!clamp && !modifiers.Take("wrap")) {
    return absl::UnimplementedError("shf without .clamp or .wrap");
  }
  const Type type = modifiers.TakeType();
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  if (type != Type::kB32) return UnknownType("shf", type);
  if (left) {
    op->handler = clamp ? &TernaryHandler<FunnelShift<true, true>, uint32_t, uint32_t>
                        : &TernaryHandler<FunnelShift<true, false>, uint32_t, uint32_t>;
  } else {
    op->handler = clamp ? &TernaryHandler<FunnelShift<false, true>, uint32_t, uint32_t>
                        : &TernaryHandler<FunnelShift<false, false>, uint32_t, uint32_t>;
  }
  SetInfo(decoder, OpClass::kInteger);
  return DecodeOperands(instruction, decoder, op, Type::kB32, {Type::kB32, Type::kB32, Type::kB32});
}

// How lop3 goes on with its result.
enum class Combine : uint32_t { kNone, kOr, kAnd };
constexpr uint32_t kNegated = 4;

// The table entry i holds the result for bits a = i >> 2 & 1, b = i >> 1 & 1, c = i & 1. Each is
// spread over a whole word, so that lanes need no branch.
void LookUpHandler(Warp* warp, const Op& op, uint32_t mask) {
  uint32_t* const to = Lanes<uint32_t>(warp, op.dst);
  const uint32_t* const a = Lanes<uint32_t>(warp, op.a);
  const uint32_t* const b = Lanes<uint32_t>(warp, op.b);
  const uint32_t* const c = Lanes<uint32_t>(warp, op.c);
  uint32_t t[8];
  for (int i = 0; i < 8; ++i) t[i] = (op.data >> i & 1) != 0 ? 0xffffffffu : 0;
  EachLane(mask, [&](int i) {
    const uint32_t low = (c[i] & t[1]) | (~c[i] & t[0]);
    const uint32_t low_b = (c[i] & t[3]) | (~c[i] & t[2]);
    const uint32_t high = (c[i] & t[5]) | (~c[i] & t[4]);
    const uint32_t high_b = (c[i] & t[7]) | (~c[i] & t[6]);
    to[i] =
        (~a[i] & ((~b[i] & low) | (b[i] & low_b))) | (a[i] & ((~b[i] & high) | (b[i] & high_b)));
  });
}

// As LookUpHandler; then whether the result is not zero is combined with predicate op.d, into the
// predicate that the upper half of op.data names.
void LookUpAndTestHandler(Warp* warp, const Op& op, uint32_t mask) {
  LookUpHandler(warp, op, mask);
  const uint32_t* const to = Lanes<uint32_t>(warp, op.dst);
  uint32_t other = PredicateLanes(warp, op.d);
  if ((op.extra & kNegated) != 0) other = ~other;
  uint32_t found = 0;
  EachLane(mask, [&](int i) { found |= static_cast<uint32_t>(to[i] != 0) << i; });
  const bool is_or = (op.extra & 3) == static_cast<uint32_t>(Combine::kOr);
  SetPredicate(warp, static_cast<uint32_t>(op.data >> 32), mask,
               is_or ? found | other : found & other);
}

absl::Status DecodeLookUp(const Instruction& instruction, Decoder* decoder, Op* op) {
  Modifiers modifiers(instruction);
  Combine combine = Combine::kNone;
  if (modifiers.Take("or")) combine = Combine::kOr;
  if (combine == Combine::kNone && modifiers.Take("and")) combine = Combine::kAnd;
  const Type type = modifiers.TakeType();
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  if (type != Type::kB32) return UnknownType("lop3", type);
  const size_t count = combine == Combine::kNone ? 5 : 6;
  ASSAY_RETURN_IF_ERROR(CheckOperandCount(instruction, count, count));
  const Operand& table = instruction.operands[4];
  if (table.kind != Operand::Kind::kInteger || table.bits > 255) {
    return absl::InvalidArgumentError("the table of lop3 is not a constant from 0 to 255");
  }
  ASSAY_ASSIGN_OR_RETURN(op->dst, decoder->Destination(instruction.operands[0], Type::kB32));
  ASSAY_ASSIGN_OR_RETURN(op->a, decoder->Source(instruction.operands[1], Type::kB32));
  ASSAY_ASSIGN_OR_RETURN(op->b, decoder->Source(instruction.operands[2], Type::kB32));
  ASSAY_ASSIGN_OR_RETURN(op->c, decoder->Source(instruction.operands[3], Type::kB32));
  op->data = table.bits;
  op->handler = &LookUpHandler;
  SetInfo(decoder, OpClass::kInteger);
  if (combine == Combine::kNone) return absl::OkStatus();
  ASSAY_ASSIGN_OR_RETURN(const uint32_t pair, decoder->PairPredicate(instruction.operands[0]));
  if (pair == kNoRegister) return absl::InvalidArgumentError("lop3 with .or or .and needs d|p");
  bool negated = false;
  ASSAY_ASSIGN_OR_RETURN(op->d, decoder->Predicate(instruction.operands[5], &negated));
  op->data |= uint64_t{pair} << 32;
  op->extra = static_cast<uint32_t>(combine) | (negated ? kNegated : 0);
  op->handler = &LookUpAndTestHandler;
  return absl::OkStatus();
}

// The bytes that `selectors` name, four in each lane, from those of a and b; a selector from 8 on
// asks for the sign. Eight lanes.
inline __m256i PermuteEight(__m256i a, __m256i b, __m256i selectors) {
  // Pairs of lanes have their eight bytes side by side; the second of a pair looks eight further.
  const __m256i which = _mm256_set1_epi8(7);
  const __m256i second = _mm256_set1_epi64x(0x08080808'00000000);
  const __m256i index = _mm256_or_si256(_mm256_and_si256(selectors, which), second);
  const __m256i low = _mm256_shuffle_epi8(_mm256_unpacklo_epi32(a, b), index);
  const __m256i high = _mm256_shuffle_epi8(_mm256_unpackhi_epi32(a, b), index);
  const __m256i bytes = _mm256_blend_epi32(low, high, 0xcc);
  const __m256i signs = _mm256_cmpgt_epi8(_mm256_setzero_si256(), bytes);
  const __m256i eight = _mm256_set1_epi8(8);
  const __m256i wants_sign = _mm256_cmpeq_epi8(_mm256_and_si256(selectors, eight), eight);
  return _mm256_blendv_epi8(bytes, signs, wants_sign);
}

// `control(c)` gives four selectors of four bits.
template <typename F>
inline void Permute(Warp* warp, const Op& op, uint32_t mask, F&& control) {
  alignas(32) uint32_t selectors[kLanes];
  alignas(32) uint32_t result[kLanes];
  const uint32_t* const c = Lanes<uint32_t>(warp, op.c);
  for (int i = 0; i < kLanes; ++i) {
    uint32_t four = control(c[i]) & 0xffff;
    four = (four | four << 8) & 0x00ff00ff;
    selectors[i] = (four | four << 4) & 0x0f0f0f0f;
  }
  const auto load = [](const uint32_t* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  };
  for (int i = 0; i < kLanes; i += 8) {
    const __m256i eight = PermuteEight(load(Lanes<uint32_t>(warp, op.a) + i),
                                       load(Lanes<uint32_t>(warp, op.b) + i), load(selectors + i));
    _mm256_store_si256(reinterpret_cast<__m256i*>(result + i), eight);
  }
  uint32_t* const to = Lanes<uint32_t>(warp, op.dst);
  EachLane(mask, [&](int i) { to[i] = result[i]; });
}

void PermuteHandler(Warp* warp, const Op& op, uint32_t mask) {
  Permute(warp, op, mask, [](uint32_t c) { return c; });
}

// op.data holds, for each value of the control's low two bits, a selector word of the general form.
void PermuteModeHandler(Warp* warp, const Op& op, uint32_t mask) {
  const uint64_t words = op.data;
  Permute(warp, op, mask,
          [words](uint32_t c) { return static_cast<uint32_t>(words >> (16 * (c & 3))); });
}

struct PermuteMode {
  std::string_view name;
  uint64_t words;  // 16 bits for each control, the first one lowest
};
constexpr PermuteMode kPermuteModes[] = {
    {"f4e", 0x6543'5432'4321'3210}, {"b4e", 0x0123'7012'6701'5670}, {"rc8", 0x3333'2222'1111'0000},
    {"ecl", 0x3333'3222'3211'3210}, {"ecr", 0x3210'2210'1110'0000}, {"rc16", 0x3232'1010'3232'1010},
};

absl::Status DecodePermute(const Instruction& instruction, Decoder* decoder, Op* op) {
  Modifiers modifiers(instruction);
  const Type type = modifiers.TakeType();
  if (type != Type::kB32) return UnknownType("prmt", type);
  op->handler = &PermuteHandler;
  for (const PermuteMode& mode : kPermuteModes) {
    if (modifiers.at_end() || !modifiers.Take(mode.name)) continue;
    op->handler = &PermuteModeHandler;
    op->data = mode.words;
    break;
  }
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  SetInfo(decoder, OpClass::kInteger);
  return DecodeOperands(instruction, decoder, op, Type::kB32, {Type::kB32, Type::kB32, Type::kB32});
}

}  // namespace

void AddBitOps(OpTable* table) {
  for (const std::string_view mnemonic : {"and", "or", "xor", "not", "cnot"}) {
    table->Add(mnemonic, DecodeLogic);
  }
  table->Add("shl", DecodeShift);
  table->Add("shr", DecodeShift);
  table->Add("shf", DecodeFunnelShift);
  table->Add("lop3", DecodeLookUp);
  table->Add("prmt", DecodePermute);
}

}  // namespace assay::emulator
