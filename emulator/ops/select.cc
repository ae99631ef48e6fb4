// Selection (PTX ISA 9.7.6.3, 9.7.6.4), and logic on predicates.
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "emulator/ops/decode.h"
#include "emulator/ops/handlers.h"
#include "emulator/ops/ops.h"
#include "emulator/ops/rounding.h"

namespace assay::emulator {
namespace {

// op.c is the predicate.
template <typename U>
void SelectHandler(Warp* warp, const Op& op, uint32_t mask) {
  U* const to = Lanes<U>(warp, op.dst);
  const U* const a = Lanes<U>(warp, op.a);
  const U* const b = Lanes<U>(warp, op.b);
  const uint32_t chosen = PredicateLanes(warp, op.c);
  EachLane(mask, [=](int i) {
    // Both are read first: a load under a condition is the slower vector code.
    const U left = a[i];
    const U right = b[i];
    to[i] = (chosen & uint32_t{1} << i) != 0 ? left : right;
  });
}

struct SignOfInteger {
  static bool Chooses(uint32_t bits) { return static_cast<int32_t>(bits) >= 0; }
};
template <bool kFlush>
struct SignOfFloat {
  static bool Chooses(uint32_t bits) { return FloatOf(kFlush ? Flush32(bits) : bits) >= 0.0f; }
};

template <typename U, typename Sign>
struct SelectBySign {
  static U Apply(U a, U b, uint32_t c) { return Sign::Chooses(c) ? a : b; }
};

template <typename Sign>
Handler PickSelectBySign(int bytes) {
  switch (bytes) {
    case 2:
      return &TernaryHandler<SelectBySign<uint16_t, Sign>, uint16_t, uint16_t, uint16_t, uint32_t>;
    case 4:
      return &TernaryHandler<SelectBySign<uint32_t, Sign>, uint32_t, uint32_t>;
    case 8:
      return &TernaryHandler<SelectBySign<uint64_t, Sign>, uint64_t, uint64_t, uint64_t, uint32_t>;
    default:
      return nullptr;
  }
}

absl::Status DecodeSelect(const Instruction& instruction, Decoder* decoder, Op* op) {
  Modifiers modifiers(instruction);
  const Type type = modifiers.TakeType();
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  ASSAY_RETURN_IF_ERROR(CheckOperandCount(instruction, 4, 4));
  switch (type == Type::kPred ? 0 : TypeBytes(type)) {
    case 2:
      op->handler = &SelectHandler<uint16_t>;
      break;
    case 4:
      op->handler = &SelectHandler<uint32_t>;
      break;
    case 8:
      op->handler = &SelectHandler<uint64_t>;
      break;
    default:
      return UnknownType("selp", type);
  }
  SetInfo(decoder, OpClass::kOther);
  bool negated = false;
  ASSAY_ASSIGN_OR_RETURN(op->dst, decoder->Destination(instruction.operands[0], type));
  ASSAY_ASSIGN_OR_RETURN(op->a, decoder->Source(instruction.operands[1], type));
  ASSAY_ASSIGN_OR_RETURN(op->b, decoder->Source(instruction.operands[2], type));
  ASSAY_ASSIGN_OR_RETURN(op->c, decoder->Predicate(instruction.operands[3], &negated));
  if (negated) std::swap(op->a, op->b);
  return absl::OkStatus();
}

absl::Status DecodeSelectBySign(const Instruction& instruction, Decoder* decoder, Op* op) {
  Modifiers modifiers(instruction);
  const bool flush = modifiers.Take("ftz");
  const Type type = modifiers.TakeType();
  const Type sign = modifiers.TakeType();
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  const int bytes = type == Type::kPred ? 0 : TypeBytes(type);
  if (sign == Type::kS32 && !flush) {
    op->handler = PickSelectBySign<SignOfInteger>(bytes);
  } else if (sign == Type::kF32) {
    op->handler = flush ? PickSelectBySign<SignOfFloat<true>>(bytes)
                        : PickSelectBySign<SignOfFloat<false>>(bytes);
  }
  if (op->handler == nullptr) return UnknownType("slct", sign);
  SetInfo(decoder, OpClass::kOther);
  return DecodeOperands(instruction, decoder, op, type, {type, type, sign});
}

// What op.extra says of logic on predicates: which sources are negated.
constexpr uint32_t kNegateA = 1;
constexpr uint32_t kNegateB = 2;

enum class Logic { kAnd, kOr, kXor, kMove };

template <Logic kLogic>
void PredicateLogicHandler(Warp* warp, const Op& op, uint32_t mask) {
  const uint32_t flip_a = (op.extra & kNegateA) != 0 ? kAllLanes : 0;
  const uint32_t flip_b = (op.extra & kNegateB) != 0 ? kAllLanes : 0;
  const uint32_t a = PredicateLanes(warp, op.a) ^ flip_a;
  uint32_t result = a;
  if constexpr (kLogic != Logic::kMove) {
    const uint32_t b = PredicateLanes(warp, op.b) ^ flip_b;
    if constexpr (kLogic == Logic::kAnd) result = a & b;
    if constexpr (kLogic == Logic::kOr) result = a | b;
    if constexpr (kLogic == Logic::kXor) result = a ^ b;
  }
  SetPredicate(warp, op.dst, mask, result);
}

}  // namespace

absl::Status DecodePredicateLogic(const Instruction& instruction, Decoder* decoder, Op* op) {
  const std::string_view mnemonic = instruction.mnemonic;
  const bool one_source = mnemonic == "not" || mnemonic == "mov";
  const size_t count = one_source ? 2 : 3;
  ASSAY_RETURN_IF_ERROR(CheckOperandCount(instruction, count, count));
  if (mnemonic == "and") op->handler = &PredicateLogicHandler<Logic::kAnd>;
  if (mnemonic == "or") op->handler = &PredicateLogicHandler<Logic::kOr>;
  if (mnemonic == "xor") op->handler = &PredicateLogicHandler<Logic::kXor>;
  if (one_source) op->handler = &PredicateLogicHandler<Logic::kMove>;
  bool negated = false;
  ASSAY_ASSIGN_OR_RETURN(op->dst, decoder->PredicateDestination(instruction.operands[0]));
  ASSAY_ASSIGN_OR_RETURN(op->a, decoder->Predicate(instruction.operands[1], &negated));
  if (negated != (mnemonic == "not")) op->extra |= kNegateA;
  if (!one_source) {
    negated = false;
    ASSAY_ASSIGN_OR_RETURN(op->b, decoder->Predicate(instruction.operands[2], &negated));
    if (negated) op->extra |= kNegateB;
  }
  SetInfo(decoder, OpClass::kOther);
  return absl::OkStatus();
}

void AddSelectOps(OpTable* table) {
  table->Add("selp", DecodeSelect);
  table->Add("slct", DecodeSelectBySign);
}

}  // namespace assay::emulator
