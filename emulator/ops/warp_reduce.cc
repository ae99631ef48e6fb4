#include "emulator/ops/warp_reduce.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/status.h"
#include "emulator/ops/warp_party.h"

namespace assay::emulator {
namespace {

constexpr uint32_t kCanonicalNan = 0x7fffffff;

// Op: b the member mask, data the offset of the predicate.
template <typename Value>
void MatchAnyHandler(Warp* warp, const Op& op, uint32_t mask) {
  EachConvergedParty(warp, op, mask, op.b, [&](uint32_t party, uint32_t) {
    const Value* const values = Lanes<Value>(warp, op.a);
    uint32_t results[kLanes];
    for (uint32_t rest = party; rest != 0;) {
      const uint32_t like = LanesLikeFirst(rest, values);
      EachLane(like, [&](int lane) { results[lane] = like; });
      rest &= ~like;
    }
    uint32_t* const to = Lanes<uint32_t>(warp, op.dst);
    EachLane(party, [&](int lane) { to[lane] = results[lane]; });
  });
}

template <typename Value>
void MatchAllHandler(Warp* warp, const Op& op, uint32_t mask) {
  EachConvergedParty(warp, op, mask, op.b, [&](uint32_t party, uint32_t) {
    const bool all = LanesLikeFirst(party, Lanes<Value>(warp, op.a)) == party;
    uint32_t* const to = Lanes<uint32_t>(warp, op.dst);
    EachLane(party, [&](int lane) { to[lane] = all ? party : 0; });
    if (op.data != kNoRegister) {
      SetPredicate(warp, static_cast<uint32_t>(op.data), party, all ? ~0u : 0u);
    }
  });
}

struct Add {
  static uint32_t Apply(uint32_t a, uint32_t b) { return a + b; }
};
struct And {
  static uint32_t Apply(uint32_t a, uint32_t b) { return a & b; }
};
struct Or {
  static uint32_t Apply(uint32_t a, uint32_t b) { return a | b; }
};
struct Xor {
  static uint32_t Apply(uint32_t a, uint32_t b) { return a ^ b; }
};
template <typename T>
struct Least {
  static uint32_t Apply(uint32_t a, uint32_t b) {
    return static_cast<uint32_t>(std::min(static_cast<T>(a), static_cast<T>(b)));
  }
};
template <typename T>
struct Greatest {
  static uint32_t Apply(uint32_t a, uint32_t b) {
    return static_cast<uint32_t>(std::max(static_cast<T>(a), static_cast<T>(b)));
  }
};

template <typename Operation>
void ReduxHandler(Warp* warp, const Op& op, uint32_t mask) {
  EachConvergedParty(warp, op, mask, op.b, [&](uint32_t party, uint32_t) {
    const uint32_t* const values = Lanes<uint32_t>(warp, op.a);
    uint32_t result = values[std::countr_zero(party)];
    for (uint32_t rest = party & (party - 1); rest != 0; rest &= rest - 1) {
      result = Operation::Apply(result, values[std::countr_zero(rest)]);
    }
    uint32_t* const to = Lanes<uint32_t>(warp, op.dst);
    EachLane(party, [=](int lane) { to[lane] = result; });
  });
}

// Op::extra of floating-point reductions.
constexpr uint32_t kMaximum = 1;
constexpr uint32_t kAbsolute = 2;
constexpr uint32_t kPropagateNan = 4;

// Floating-point numbers in the order of their bits, -0 below +0; NaNs are kept out.
int32_t OrderOf(uint32_t bits) {
  const auto value = static_cast<int32_t>(bits);
  return value < 0 ? value ^ 0x7fffffff : value;
}

void FloatReduxHandler(Warp* warp, const Op& op, uint32_t mask) {
  EachConvergedParty(warp, op, mask, op.b, [&](uint32_t party, uint32_t) {
    const uint32_t* const values = Lanes<uint32_t>(warp, op.a);
    uint32_t result = kCanonicalNan;
    bool found = false;
    bool nan = false;
    for (uint32_t rest = party; rest != 0; rest &= rest - 1) {
      uint32_t value = values[std::countr_zero(rest)];
      if ((op.extra & kAbsolute) != 0) value &= 0x7fffffff;
      if (std::isnan(std::bit_cast<float>(value))) {
        nan = true;
        continue;
      }
      const bool better = (op.extra & kMaximum) != 0 ? OrderOf(value) > OrderOf(result)
                                                     : OrderOf(value) < OrderOf(result);
      if (!found || better) result = value;
      found = true;
    }
    if (nan && (op.extra & kPropagateNan) != 0) result = kCanonicalNan;
    uint32_t* const to = Lanes<uint32_t>(warp, op.dst);
    EachLane(party, [=](int lane) { to[lane] = result; });
  });
}

struct ReduxForm {
  std::string_view operation;
  std::string_view type;
  Handler handler;
};
constexpr ReduxForm kReduxForms[] = {
    {"add", "u32", &ReduxHandler<Add>},
    {"add", "s32", &ReduxHandler<Add>},
    {"min", "u32", &ReduxHandler<Least<uint32_t>>},
    {"min", "s32", &ReduxHandler<Least<int32_t>>},
    {"max", "u32", &ReduxHandler<Greatest<uint32_t>>},
    {"max", "s32", &ReduxHandler<Greatest<int32_t>>},
    {"and", "b32", &ReduxHandler<And>},
    {"or", "b32", &ReduxHandler<Or>},
    {"xor", "b32", &ReduxHandler<Xor>},
    {"min", "f32", &FloatReduxHandler},
    {"max", "f32", &FloatReduxHandler},
};

}  // namespace

absl::Status DecodeMatch(const Instruction& instruction, Decoder* decoder, Op* op) {
  Modifiers modifiers(instruction);
  const bool all = modifiers.Take("all");
  if (!all && !modifiers.Take("any")) {
    return absl::UnimplementedError("a match that is neither .any nor .all");
  }
  if (!modifiers.Take("sync")) return absl::UnimplementedError("match without .sync");
  const bool wide = modifiers.Take("b64");
  if (!wide && !modifiers.Take("b32")) {
    return absl::UnimplementedError("a match of other than .b32 and .b64");
  }
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  ASSAY_RETURN_IF_ERROR(CheckOperandCount(instruction, 3, 3));
  const auto& operands = instruction.operands;
  ASSAY_ASSIGN_OR_RETURN(op->dst, decoder->Destination(operands[0], Type::kB32));
  ASSAY_ASSIGN_OR_RETURN(op->data, decoder->PairPredicate(operands[0]));
  if (!all && op->data != kNoRegister) {
    return absl::InvalidArgumentError("match.any has no predicate destination");
  }
  ASSAY_ASSIGN_OR_RETURN(op->a, decoder->Source(operands[1], wide ? Type::kB64 : Type::kB32));
  ASSAY_ASSIGN_OR_RETURN(op->b, decoder->Source(operands[2], Type::kB32));
  if (wide) {
    op->handler = all ? &MatchAllHandler<uint64_t> : &MatchAnyHandler<uint64_t>;
  } else {
    op->handler = all ? &MatchAllHandler<uint32_t> : &MatchAnyHandler<uint32_t>;
  }
  return absl::OkStatus();
}

absl::Status DecodeRedux(const Instruction& instruction, Decoder* decoder, Op* op) {
  Modifiers modifiers(instruction);
  if (!modifiers.Take("sync")) return absl::UnimplementedError("redux without .sync");
  const std::string_view operation = modifiers.current();
  if (!modifiers.at_end()) modifiers.Skip();
  if (operation == "max") op->extra |= kMaximum;
  if (modifiers.Take("abs")) op->extra |= kAbsolute;
  if (modifiers.Take("NaN")) op->extra |= kPropagateNan;
  const std::string_view type = modifiers.current();
  const auto form =
      std::find_if(std::begin(kReduxForms), std::end(kReduxForms),
                   [&](const auto& f) { return f.operation == operation && f.type == type; });
  const bool only_float = (op->extra & (kAbsolute | kPropagateNan)) != 0;
  if (form == std::end(kReduxForms) || (only_float && type != "f32")) {
    return absl::UnimplementedError(
        "a reduction that is not .add, .min or .max of .u32 or .s32, .and, .or or .xor of .b32, or "
        ".min or .max of .f32");
  }
  modifiers.Skip();
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  ASSAY_RETURN_IF_ERROR(CheckOperandCount(instruction, 3, 3));
  const auto& operands = instruction.operands;
  const Type source = type == "f32" ? Type::kF32 : Type::kB32;
  ASSAY_ASSIGN_OR_RETURN(op->dst, decoder->Destination(operands[0], source));
  ASSAY_ASSIGN_OR_RETURN(op->a, decoder->Source(operands[1], source));
  ASSAY_ASSIGN_OR_RETURN(op->b, decoder->Source(operands[2], Type::kB32));
  op->handler = form->handler;
  return absl::OkStatus();
}

}  // namespace assay::emulator
