// Comparisons: setp and set (PTX ISA 9.7.6.1, 9.7.6.2, 9.7.7).
#include <immintrin.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "emulator/ops/decode.h"
#include "emulator/ops/half_lanes.h"
#include "emulator/ops/handlers.h"
#include "emulator/ops/ops.h"
#include "emulator/ops/rounding.h"

namespace assay::emulator {
namespace {

// What op.extra says.
constexpr uint32_t kNegateResult = 1;
constexpr uint32_t kNegateOther = 2;  // !c
constexpr uint32_t kBooleanShift = 2;
enum class Boolean : uint32_t { kNone, kAnd, kOr, kXor };
constexpr uint32_t kNarrow = 16;  // set: the destination has 16 bits

// Every comparison is one of these, perhaps with operands exchanged or the result negated.
enum class Relation { kEqual, kLess, kLessEqual, kUnequal, kNumber };

template <Relation kRelation, typename T>
inline bool Holds(T a, T b) {
  if constexpr (kRelation == Relation::kEqual) return a == b;
  if constexpr (kRelation == Relation::kLess) return a < b;
  if constexpr (kRelation == Relation::kLessEqual) return a <= b;
  if constexpr (kRelation == Relation::kUnequal) return a < b || a > b;
  return a == a && b == b;
}

// A bit for every lane, from f(lane): all lanes are asked.
template <typename F>
inline uint32_t MaskOfLanes(F&& f) {
  alignas(32) int32_t flags[kLanes];
#pragma GCC ivdep
  for (int i = 0; i < kLanes; ++i) flags[i] = f(i) ? -1 : 0;
  uint32_t result = 0;
  for (int i = 0; i < kLanes; i += 8) {
    const uint32_t eight = static_cast<uint32_t>(
        _mm256_movemask_ps(_mm256_load_ps(reinterpret_cast<float*>(flags + i))));
    result |= eight << i;
  }
  return result;
}

// What is compared: how it lies in a register, and its value.
template <typename T>
struct IntegerValue {
  using Stored = RegisterOf<T>;
  static T Get(Stored bits) { return static_cast<T>(bits); }
};
template <bool kFlush>
struct F32Value {
  using Stored = uint32_t;
  static float Get(Stored bits) { return FloatOf(kFlush ? Flush32(bits) : bits); }
};
struct F64Value {
  using Stored = uint64_t;
  static double Get(Stored bits) { return DoubleOf(bits); }
};

template <Relation kRelation, typename Value>
uint32_t Compare(const Warp* warp, const Op& op) {
  using Stored = typename Value::Stored;
  const Stored* const a = Lanes<Stored>(warp, op.a);
  const Stored* const b = Lanes<Stored>(warp, op.b);
  return MaskOfLanes([=](int i) { return Holds<kRelation>(Value::Get(a[i]), Value::Get(b[i])); });
}

struct HalfMasks {
  uint32_t low = 0;
  uint32_t high = 0;
};

// Halves, one or two a lane.
template <Relation kRelation, typename Format, bool kPacked, bool kFlush>
HalfMasks CompareHalves(const Warp* warp, const Op& op) {
  constexpr int kCount = kHalfCount<kPacked>;
  HalfFloats values[2];
  for (int side = 0; side < 2; ++side) {
    HalfBits bits;
    ReadHalves<kPacked>(warp, side == 0 ? op.a : op.b, &bits);
    if constexpr (kFlush) {
      for (int i = 0; i < kCount; ++i) bits.values[i] = Format::Flush(bits.values[i]);
    }
    Format::template Widen<kCount>(bits, &values[side]);
  }
  const float* const a = values[0].values;
  const float* const b = values[1].values;
  constexpr int kStep = kPacked ? 2 : 1;
  HalfMasks result;
  result.low = MaskOfLanes([=](int i) { return Holds<kRelation>(a[kStep * i], b[kStep * i]); });
  if constexpr (kPacked) {
    result.high = MaskOfLanes([=](int i) { return Holds<kRelation>(a[2 * i + 1], b[2 * i + 1]); });
  }
  return result;
}

inline uint32_t Combine(uint32_t result, uint32_t other, uint32_t extra) {
  if ((extra & kNegateOther) != 0) other = ~other;
  switch (static_cast<Boolean>(extra >> kBooleanShift & 3)) {
    case Boolean::kNone:
      return result;
    case Boolean::kAnd:
      return result & other;
    case Boolean::kOr:
      return result | other;
    case Boolean::kXor:
      return result ^ other;
  }
  return result;
}

inline uint32_t OtherPredicate(const Warp* warp, const Op& op) {
  return op.c == kNoRegister ? 0 : PredicateLanes(warp, op.c);
}

// setp: op.dst is p, op.d the second destination, op.c the predicate to combine with.
template <Relation kRelation, typename Value>
void SetPredicateHandler(Warp* warp, const Op& op, uint32_t mask) {
  const uint32_t found =
      Compare<kRelation, Value>(warp, op) ^ ((op.extra & kNegateResult) != 0 ? kAllLanes : 0);
  const uint32_t other = OtherPredicate(warp, op);
  SetPredicate(warp, op.dst, mask, Combine(found, other, op.extra));
  if (op.d != kNoRegister) SetPredicate(warp, op.d, mask, Combine(~found, other, op.extra));
}

template <Relation kRelation, typename Format, bool kPacked, bool kFlush>
void SetPredicateHalfHandler(Warp* warp, const Op& op, uint32_t mask) {
  HalfMasks found = CompareHalves<kRelation, Format, kPacked, kFlush>(warp, op);
  const uint32_t negate = (op.extra & kNegateResult) != 0 ? kAllLanes : 0;
  const uint32_t other = OtherPredicate(warp, op);
  const uint32_t low = found.low ^ negate;
  SetPredicate(warp, op.dst, mask, Combine(low, other, op.extra));
  if (op.d == kNoRegister) return;
  const uint32_t second = kPacked ? found.high ^ negate : ~low;
  SetPredicate(warp, op.d, mask, Combine(second, other, op.extra));
}

// set: op.data is what a lane gets where the result is true; a packed one has its halves apart.
void WriteChosen(Warp* warp, const Op& op, uint32_t mask, uint32_t low, uint32_t high) {
  const auto chosen = static_cast<uint32_t>(op.data);
  if ((op.extra & kNarrow) != 0) {
    uint16_t* const to = Lanes<uint16_t>(warp, op.dst);
    EachLane(mask, [=](int i) { to[i] = (low >> i & 1) != 0 ? chosen & 0xffff : 0; });
    return;
  }
  uint32_t* const to = Lanes<uint32_t>(warp, op.dst);
  EachLane(mask, [=](int i) {
    const uint32_t low_part = (low >> i & 1) != 0 ? chosen & 0xffff : 0;
    const uint32_t high_part = (high >> i & 1) != 0 ? chosen & 0xffff0000u : 0;
    to[i] = low_part | high_part;
  });
}

template <Relation kRelation, typename Value>
void SetHandler(Warp* warp, const Op& op, uint32_t mask) {
  const uint32_t negate = (op.extra & kNegateResult) != 0 ? kAllLanes : 0;
  const uint32_t found = Compare<kRelation, Value>(warp, op) ^ negate;
  const uint32_t result = Combine(found, OtherPredicate(warp, op), op.extra);
  WriteChosen(warp, op, mask, result, result);
}

template <Relation kRelation, typename Format, bool kPacked, bool kFlush>
void SetHalfHandler(Warp* warp, const Op& op, uint32_t mask) {
  const uint32_t negate = (op.extra & kNegateResult) != 0 ? kAllLanes : 0;
  const uint32_t other = OtherPredicate(warp, op);
  const HalfMasks found = CompareHalves<kRelation, Format, kPacked, kFlush>(warp, op);
  const uint32_t low = Combine(found.low ^ negate, other, op.extra);
  const uint32_t high = kPacked ? Combine(found.high ^ negate, other, op.extra) : low;
  WriteChosen(warp, op, mask, low, high);
}

// The choice of a handler, by what is compared.
template <Relation kRelation, bool kSet, typename Value>
constexpr Handler kCompare =
    kSet ? &SetHandler<kRelation, Value> : &SetPredicateHandler<kRelation, Value>;
template <Relation kRelation, bool kSet, typename Format, bool kPacked, bool kFlush>
constexpr Handler kCompareHalves =
    kSet ? &SetHalfHandler<kRelation, Format, kPacked, kFlush>
         : &SetPredicateHalfHandler<kRelation, Format, kPacked, kFlush>;

template <Relation kRelation, bool kSet>
Handler PickFloat(Type type, bool flush) {
  switch (type) {
    case Type::kF32:
      return flush ? kCompare<kRelation, kSet, F32Value<true>>
                   : kCompare<kRelation, kSet, F32Value<false>>;
    case Type::kF64:
      return kCompare<kRelation, kSet, F64Value>;
    case Type::kF16:
      return flush ? kCompareHalves<kRelation, kSet, F16Lanes, false, true>
                   : kCompareHalves<kRelation, kSet, F16Lanes, false, false>;
    case Type::kF16x2:
      return flush ? kCompareHalves<kRelation, kSet, F16Lanes, true, true>
                   : kCompareHalves<kRelation, kSet, F16Lanes, true, false>;
    case Type::kBF16:
      return kCompareHalves<kRelation, kSet, BF16Lanes, false, false>;
    case Type::kBF16x2:
      return kCompareHalves<kRelation, kSet, BF16Lanes, true, false>;
    default:
      return nullptr;
  }
}

template <Relation kRelation, bool kSet>
Handler PickInteger(Type type) {
  switch (type) {
    case Type::kB16:
    case Type::kU16:
      return kCompare<kRelation, kSet, IntegerValue<uint16_t>>;
    case Type::kS16:
      return kCompare<kRelation, kSet, IntegerValue<int16_t>>;
    case Type::kB32:
    case Type::kU32:
      return kCompare<kRelation, kSet, IntegerValue<uint32_t>>;
    case Type::kS32:
      return kCompare<kRelation, kSet, IntegerValue<int32_t>>;
    case Type::kB64:
    case Type::kU64:
      return kCompare<kRelation, kSet, IntegerValue<uint64_t>>;
    case Type::kS64:
      return kCompare<kRelation, kSet, IntegerValue<int64_t>>;
    default:
      return nullptr;
  }
}

template <bool kSet>
Handler PickCompare(Relation relation, Type type, bool flush) {
  switch (relation) {
    case Relation::kEqual:
      if (IsFloat(type) || IsHalf(type)) return PickFloat<Relation::kEqual, kSet>(type, flush);
      return PickInteger<Relation::kEqual, kSet>(type);
    case Relation::kLess:
      if (IsFloat(type) || IsHalf(type)) return PickFloat<Relation::kLess, kSet>(type, flush);
      return PickInteger<Relation::kLess, kSet>(type);
    case Relation::kLessEqual:
      if (IsFloat(type) || IsHalf(type)) return PickFloat<Relation::kLessEqual, kSet>(type, flush);
      return PickInteger<Relation::kLessEqual, kSet>(type);
    case Relation::kUnequal:
      return PickFloat<Relation::kUnequal, kSet>(type, flush);
    case Relation::kNumber:
      return PickFloat<Relation::kNumber, kSet>(type, flush);
  }
  return nullptr;
}

// A comparison operator: for numbers of a kind, the relation it stands for.
struct Comparison {
  std::string_view name;
  Relation relation;
  bool exchanged = false;
  bool negated = false;
};
constexpr Comparison kFloatComparisons[] = {
    {"eq", Relation::kEqual},
    {"ne", Relation::kUnequal},
    {"lt", Relation::kLess},
    {"le", Relation::kLessEqual},
    {"gt", Relation::kLess, true},
    {"ge", Relation::kLessEqual, true},
    {"equ", Relation::kUnequal, false, true},
    {"neu", Relation::kEqual, false, true},
    {"ltu", Relation::kLessEqual, true, true},
    {"leu", Relation::kLess, true, true},
    {"gtu", Relation::kLessEqual, false, true},
    {"geu", Relation::kLess, false, true},
    {"num", Relation::kNumber},
    {"nan", Relation::kNumber, false, true},
};
constexpr Comparison kIntegerComparisons[] = {
    {"eq", Relation::kEqual},      {"ne", Relation::kEqual, false, true},
    {"lt", Relation::kLess},       {"le", Relation::kLessEqual},
    {"gt", Relation::kLess, true}, {"ge", Relation::kLessEqual, true},
    {"lo", Relation::kLess},       {"ls", Relation::kLessEqual},
    {"hi", Relation::kLess, true}, {"hs", Relation::kLessEqual, true},
};

bool IsBits(Type type) { return type == Type::kB16 || type == Type::kB32 || type == Type::kB64; }

std::optional<Comparison> FindComparison(std::string_view name, Type type) {
  if (IsFloat(type) || IsHalf(type)) {
    for (const Comparison& comparison : kFloatComparisons) {
      if (comparison.name == name) return comparison;
    }
    return std::nullopt;
  }
  const bool only_unsigned = name == "lo" || name == "ls" || name == "hi" || name == "hs";
  if (only_unsigned && IsSigned(type)) return std::nullopt;
  if (IsBits(type) && name != "eq" && name != "ne") return std::nullopt;
  for (const Comparison& comparison : kIntegerComparisons) {
    if (comparison.name == name) return comparison;
  }
  return std::nullopt;
}

// The modifiers of set and setp.
struct Comparing {
  std::string_view name;
  Boolean boolean = Boolean::kNone;
  bool flush = false;
  Type result = Type::kNone;
  Type type = Type::kNone;
};

absl::Status TakeComparing(const Instruction& instruction, bool set, Comparing* comparing) {
  Modifiers modifiers(instruction);
  comparing->name = modifiers.current();
  if (!modifiers.at_end()) modifiers.Skip();
  if (modifiers.Take("and")) {
    comparing->boolean = Boolean::kAnd;
  } else if (modifiers.Take("or")) {
    comparing->boolean = Boolean::kOr;
  } else if (modifiers.Take("xor")) {
    comparing->boolean = Boolean::kXor;
  }
  comparing->flush = modifiers.Take("ftz");
  if (set) comparing->result = modifiers.TakeType();
  comparing->type = modifiers.TakeType();
  return modifiers.Finish();
}

// Sources a, b, and c when there is a boolean; the handler apart.
absl::Status DecodeComparing(const Instruction& instruction, Decoder* decoder,
                             const Comparing& comparing, const Comparison& comparison, Op* op) {
  const size_t count = comparing.boolean == Boolean::kNone ? 3 : 4;
  ASSAY_RETURN_IF_ERROR(CheckOperandCount(instruction, count, count));
  const Type type = IsHalf(comparing.type) ? BitsOf(comparing.type) : comparing.type;
  ASSAY_ASSIGN_OR_RETURN(op->a, decoder->Source(instruction.operands[1], type));
  ASSAY_ASSIGN_OR_RETURN(op->b, decoder->Source(instruction.operands[2], type));
  if (comparison.exchanged) std::swap(op->a, op->b);
  bool negated = false;
  if (comparing.boolean != Boolean::kNone) {
    ASSAY_ASSIGN_OR_RETURN(op->c, decoder->Predicate(instruction.operands[3], &negated));
  }
  op->extra = (comparison.negated ? kNegateResult : 0) | (negated ? kNegateOther : 0) |
              static_cast<uint32_t>(comparing.boolean) << kBooleanShift;
  const bool is_float = IsFloat(comparing.type) || IsHalf(comparing.type);
  SetInfo(decoder, is_float ? OpClass::kOther : OpClass::kInteger);
  return absl::OkStatus();
}

absl::Status DecodeSetPredicate(const Instruction& instruction, Decoder* decoder, Op* op) {
  Comparing comparing;
  ASSAY_RETURN_IF_ERROR(TakeComparing(instruction, false, &comparing));
  const auto comparison = FindComparison(comparing.name, comparing.type);
  if (!comparison.has_value()) return UnknownType("this comparison", comparing.type);
  op->handler = PickCompare<false>(comparison->relation, comparing.type, comparing.flush);
  if (op->handler == nullptr) return UnknownType("setp", comparing.type);
  ASSAY_RETURN_IF_ERROR(DecodeComparing(instruction, decoder, comparing, *comparison, op));
  ASSAY_ASSIGN_OR_RETURN(op->dst, decoder->PredicateDestination(instruction.operands[0]));
  ASSAY_ASSIGN_OR_RETURN(op->d, decoder->PairPredicate(instruction.operands[0]));
  return absl::OkStatus();
}

// What set writes for true, and whether its destination has 16 bits.
bool TrueValue(Type result, uint64_t* bits, bool* narrow) {
  *narrow = false;
  *bits = 0xffffffffu;
  switch (result) {
    case Type::kU32:
    case Type::kS32:
      return true;
    case Type::kF32:
      *bits = 0x3f800000u;
      return true;
    case Type::kF16x2:
      *bits = 0x3c003c00u;
      return true;
    case Type::kBF16x2:
      *bits = 0x3f803f80u;
      return true;
    case Type::kU16:
    case Type::kS16:
      *narrow = true;
      *bits = 0xffff;
      return true;
    case Type::kF16:
      *narrow = true;
      *bits = 0x3c00;
      return true;
    case Type::kBF16:
      *narrow = true;
      *bits = 0x3f80;
      return true;
    default:
      return false;
  }
}

// Two comparisons have a result of their own type or of 32 bits; 16-bit integers come from halves.
bool ValidSet(Type result, Type type) {
  if (type == Type::kF16x2 || type == Type::kBF16x2) {
    return result == type || result == Type::kU32 || result == Type::kS32;
  }
  if (result == Type::kU16 || result == Type::kS16) {
    return type == Type::kF16 || type == Type::kBF16;
  }
  return result != Type::kF16x2 && result != Type::kBF16x2;
}

absl::Status DecodeSet(const Instruction& instruction, Decoder* decoder, Op* op) {
  Comparing comparing;
  ASSAY_RETURN_IF_ERROR(TakeComparing(instruction, true, &comparing));
  const auto comparison = FindComparison(comparing.name, comparing.type);
  if (!comparison.has_value()) return UnknownType("this comparison", comparing.type);
  bool narrow = false;
  if (!TrueValue(comparing.result, &op->data, &narrow)) {
    return UnknownType("a result", comparing.result);
  }
  if (!ValidSet(comparing.result, comparing.type)) return UnknownType("a result", comparing.result);
  op->handler = PickCompare<true>(comparison->relation, comparing.type, comparing.flush);
  if (op->handler == nullptr) return UnknownType("set", comparing.type);
  ASSAY_RETURN_IF_ERROR(DecodeComparing(instruction, decoder, comparing, *comparison, op));
  if (narrow) op->extra |= kNarrow;
  ASSAY_ASSIGN_OR_RETURN(
      op->dst, decoder->Destination(instruction.operands[0], narrow ? Type::kB16 : Type::kB32));
  return absl::OkStatus();
}

}  // namespace

void AddCompareOps(OpTable* table) {
  table->Add("setp", DecodeSetPredicate);
  table->Add("set", DecodeSet);
}

}  // namespace assay::emulator
