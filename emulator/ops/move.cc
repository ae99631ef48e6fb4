// Moves, with packing and unpacking, and addresses: mov, cvta, isspacep (PTX ISA 9.7.9).
#include <cstdint>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "emulator/execute/warp.h"
#include "emulator/memory/device_memory.h"
#include "emulator/ops/decode.h"
#include "emulator/ops/handlers.h"
#include "emulator/ops/ops.h"

namespace assay::emulator {
namespace {

template <typename U>
void MoveHandler(Warp* warp, const Op& op, uint32_t mask) {
  U* const to = Lanes<U>(warp, op.dst);
  const U* const a = Lanes<U>(warp, op.a);
  EachLane(mask, [=](int i) { to[i] = a[i]; });
}

struct Wide {
  uint64_t low;
  uint64_t high;
};

// The value of ClockOf, from bit op.extra on: the same for all lanes.
template <typename U>
void ClockHandler(Warp* warp, const Op& op, uint32_t mask) {
  U* const to = Lanes<U>(warp, op.dst);
  const U value = static_cast<U>(ClockOf(warp) >> op.extra);
  EachLane(mask, [=](int i) { to[i] = value; });
}

// Parts of kBits in registers of Part, to and from one register of Whole. The first part is the
// lowest.
template <typename Whole, typename Part, int kBits, int kParts>
struct Packing {
  static void Pack(Warp* warp, const Op& op, uint32_t mask) {
    Whole* const to = Lanes<Whole>(warp, op.dst);
    const uint32_t offsets[] = {op.a, op.b, op.c, op.d};
    const Part* parts[kParts];
    for (int part = 0; part < kParts; ++part) parts[part] = Lanes<Part>(warp, offsets[part]);
    EachLane(mask, [&](int i) {
      constexpr Whole kOnes = static_cast<Whole>(~Whole{0}) >> (8 * sizeof(Whole) - kBits);
      Whole value = 0;
      for (int part = 0; part < kParts; ++part) {
        value = static_cast<Whole>(value | (Whole{parts[part][i]} & kOnes) << (part * kBits));
      }
      to[i] = value;
    });
  }
  static void Unpack(Warp* warp, const Op& op, uint32_t mask) {
    const Whole* const from = Lanes<Whole>(warp, op.a);
    const uint32_t offsets[] = {op.dst, op.b, op.c, op.d};
    constexpr Whole kOnes = static_cast<Whole>(~Whole{0}) >> (8 * sizeof(Whole) - kBits);
    for (int part = 0; part < kParts; ++part) {
      Part* const to = Lanes<Part>(warp, offsets[part]);
      EachLane(mask, [=](int i) { to[i] = static_cast<Part>(from[i] >> (part * kBits) & kOnes); });
    }
  }
};

void PackWideHandler(Warp* warp, const Op& op, uint32_t mask) {
  Wide* const to = Lanes<Wide>(warp, op.dst);
  const uint64_t* const low = Lanes<uint64_t>(warp, op.a);
  const uint64_t* const high = Lanes<uint64_t>(warp, op.b);
  EachLane(mask, [=](int i) { to[i] = {low[i], high[i]}; });
}

void UnpackWideHandler(Warp* warp, const Op& op, uint32_t mask) {
  const Wide* const from = Lanes<Wide>(warp, op.a);
  uint64_t* const low = Lanes<uint64_t>(warp, op.dst);
  uint64_t* const high = Lanes<uint64_t>(warp, op.b);
  EachLane(mask, [=](int i) {
    low[i] = from[i].low;
    high[i] = from[i].high;
  });
}

void PackWordsHandler(Warp* warp, const Op& op, uint32_t mask) {
  Wide* const to = Lanes<Wide>(warp, op.dst);
  const uint32_t offsets[] = {op.a, op.b, op.c, op.d};
  EachLane(mask, [=](int i) {
    uint64_t words[4];
    for (int part = 0; part < 4; ++part) words[part] = Lanes<uint32_t>(warp, offsets[part])[i];
    to[i] = {words[0] | words[1] << 32, words[2] | words[3] << 32};
  });
}

void UnpackWordsHandler(Warp* warp, const Op& op, uint32_t mask) {
  const Wide* const from = Lanes<Wide>(warp, op.a);
  const uint32_t offsets[] = {op.dst, op.b, op.c, op.d};
  EachLane(mask, [=](int i) {
    const Wide value = from[i];
    Lanes<uint32_t>(warp, offsets[0])[i] = static_cast<uint32_t>(value.low);
    Lanes<uint32_t>(warp, offsets[1])[i] = static_cast<uint32_t>(value.low >> 32);
    Lanes<uint32_t>(warp, offsets[2])[i] = static_cast<uint32_t>(value.high);
    Lanes<uint32_t>(warp, offsets[3])[i] = static_cast<uint32_t>(value.high >> 32);
  });
}

struct PackingChoice {
  int bytes;  // of the whole
  int parts;
  Type part;
  Handler pack;
  Handler unpack;
};
template <typename Whole, typename Part, int kBits, int kParts>
constexpr PackingChoice ChoiceOf(Type part) {
  using Chosen = Packing<Whole, Part, kBits, kParts>;
  return {sizeof(Whole), kParts, part, &Chosen::Pack, &Chosen::Unpack};
}
constexpr PackingChoice kPackings[] = {
    ChoiceOf<uint16_t, uint16_t, 8, 2>(Type::kB8),
    ChoiceOf<uint32_t, uint16_t, 8, 4>(Type::kB8),
    ChoiceOf<uint32_t, uint16_t, 16, 2>(Type::kB16),
    ChoiceOf<uint64_t, uint16_t, 16, 4>(Type::kB16),
    ChoiceOf<uint64_t, uint32_t, 32, 2>(Type::kB32),
    {16, 2, Type::kB64, &PackWideHandler, &UnpackWideHandler},
    {16, 4, Type::kB32, &PackWordsHandler, &UnpackWordsHandler},
};

absl::Status DecodePack(const Instruction& instruction, Decoder* decoder, Type type, Op* op) {
  const Operand& destination = instruction.operands[0];
  const Operand& source = instruction.operands[1];
  const bool unpack = destination.kind == Operand::Kind::kVector;
  const std::vector<Operand>& parts = unpack ? destination.elements : source.elements;
  const PackingChoice* choice = nullptr;
  for (const PackingChoice& candidate : kPackings) {
    const bool fits = candidate.bytes == TypeBytes(type);
    if (fits && candidate.parts == static_cast<int>(parts.size())) choice = &candidate;
  }
  if (choice == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("a vector of ", parts.size(), " does not make up the type"));
  }
  uint32_t* const pack_fields[] = {&op->a, &op->b, &op->c, &op->d};
  uint32_t* const unpack_fields[] = {&op->dst, &op->b, &op->c, &op->d};
  if (unpack) {
    op->handler = choice->unpack;
    ASSAY_ASSIGN_OR_RETURN(op->a, decoder->Source(source, BitsOf(type)));
    for (size_t i = 0; i < parts.size(); ++i) {
      ASSAY_ASSIGN_OR_RETURN(*unpack_fields[i], decoder->Destination(parts[i], choice->part));
    }
    return absl::OkStatus();
  }
  op->handler = choice->pack;
  ASSAY_ASSIGN_OR_RETURN(op->dst, decoder->Destination(destination, BitsOf(type)));
  for (size_t i = 0; i < parts.size(); ++i) {
    ASSAY_ASSIGN_OR_RETURN(*pack_fields[i], decoder->Source(parts[i], choice->part));
  }
  return absl::OkStatus();
}

struct ClockRegister {
  std::string_view name;
  int bytes;
  uint32_t shift;
};
constexpr ClockRegister kClocks[] = {
    {"%clock", 4, 0},       {"%clock_hi", 4, 32},      {"%clock64", 8, 0},
    {"%globaltimer", 8, 0}, {"%globaltimer_lo", 4, 0}, {"%globaltimer_hi", 4, 32},
};

const ClockRegister* FindClock(const Operand& operand) {
  if (operand.kind != Operand::Kind::kSpecial) return nullptr;
  for (const ClockRegister& clock : kClocks) {
    if (clock.name == operand.symbol) return &clock;
  }
  return nullptr;
}

absl::Status DecodeMove(const Instruction& instruction, Decoder* decoder, Op* op) {
  Modifiers modifiers(instruction);
  const Type type = modifiers.TakeType();
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  ASSAY_RETURN_IF_ERROR(CheckOperandCount(instruction, 2, 2));
  SetInfo(decoder, OpClass::kOther);
  if (type == Type::kPred) return DecodePredicateLogic(instruction, decoder, op);
  const Operand& source = instruction.operands[1];
  if (instruction.operands[0].kind == Operand::Kind::kVector ||
      source.kind == Operand::Kind::kVector) {
    return DecodePack(instruction, decoder, type, op);
  }
  if (const ClockRegister* clock = FindClock(source)) {
    if (TypeBytes(type) != clock->bytes) return UnknownType(clock->name, type);
    op->handler = clock->bytes == 4 ? &ClockHandler<uint32_t> : &ClockHandler<uint64_t>;
    op->extra = clock->shift;
    ASSAY_ASSIGN_OR_RETURN(op->dst, decoder->Destination(instruction.operands[0], type));
    return absl::OkStatus();
  }
  switch (TypeBytes(type)) {
    case 2:
      op->handler = &MoveHandler<uint16_t>;
      break;
    case 4:
      op->handler = &MoveHandler<uint32_t>;
      break;
    case 8:
      op->handler = &MoveHandler<uint64_t>;
      break;
    case 16:
      op->handler = &MoveHandler<Wide>;
      break;
    default:
      return UnknownType("mov", type);
  }
  return DecodeOperands(instruction, decoder, op, type, {type});
}

// The window of a space, when its addresses are not generic ones by themselves.
uint64_t WindowOf(Space space) {
  switch (space) {
    case Space::kShared:
      return kSharedWindow;
    case Space::kLocal:
      return kLocalWindow;
    case Space::kParam:
      return kParamWindow;
    default:
      return 0;
  }
}

// op.data is added.
struct AddressSum {
  static void Run(Warp* warp, const Op& op, uint32_t mask) {
    uint64_t* const to = Lanes<uint64_t>(warp, op.dst);
    const uint64_t* const a = Lanes<uint64_t>(warp, op.a);
    const uint64_t window = op.data;
    EachLane(mask, [=](int i) { to[i] = a[i] + window; });
  }
};

// A space, perhaps with ::cta, ::cluster or ::entry.
bool TakeSpace(Modifiers* modifiers, Space* space) {
  const std::string_view name = modifiers->current();
  if (name == "shared::cta" || name == "shared::cluster") {
    *space = Space::kShared;
  } else if (name == "param::entry") {
    *space = Space::kParam;
  } else if (name == "const" || name == "global" || name == "local" || name == "shared" ||
             name == "param") {
    *space = ParseSpace(name);
  } else {
    return false;
  }
  modifiers->Skip();
  return true;
}

absl::Status DecodeConvertAddress(const Instruction& instruction, Decoder* decoder, Op* op) {
  Modifiers modifiers(instruction);
  const bool from_generic = modifiers.Take("to");
  Space space = Space::kGeneric;
  if (!TakeSpace(&modifiers, &space)) return absl::UnimplementedError("cvta without a space");
  const Type type = modifiers.TakeType();
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  SetInfo(decoder, OpClass::kInteger);
  const uint64_t window = WindowOf(space);
  if (type == Type::kU32) {
    // The low half of a generic address is the address in its window; the way back has no room.
    if (!from_generic || window == 0) return UnknownType("a generic address", type);
    op->handler = &MoveHandler<uint32_t>;
  } else if (type == Type::kU64) {
    op->handler = window == 0 ? &MoveHandler<uint64_t> : &AddressSum::Run;
    op->data = from_generic ? uint64_t{0} - window : window;
  } else {
    return UnknownType("cvta", type);
  }
  return DecodeOperands(instruction, decoder, op, type, {type});
}

inline bool InWindow(uint64_t address, uint64_t window) { return address - window < kWindowBytes; }

// op.data is the window; 0 asks for global, which is what shared and local are not.
void IsInSpaceHandler(Warp* warp, const Op& op, uint32_t mask) {
  const uint64_t* const a = Lanes<uint64_t>(warp, op.a);
  uint32_t found = 0;
  for (int i = 0; i < kLanes; ++i) {
    const bool there = op.data != 0
                           ? InWindow(a[i], op.data)
                           : !InWindow(a[i], kSharedWindow) && !InWindow(a[i], kLocalWindow);
    found |= static_cast<uint32_t>(there) << i;
  }
  SetPredicate(warp, op.dst, mask, found);
}

absl::Status DecodeIsInSpace(const Instruction& instruction, Decoder* decoder, Op* op) {
  Modifiers modifiers(instruction);
  Space space = Space::kGeneric;
  if (!TakeSpace(&modifiers, &space)) return absl::UnimplementedError("isspacep without a space");
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  ASSAY_RETURN_IF_ERROR(CheckOperandCount(instruction, 2, 2));
  if (space == Space::kConst) return absl::UnimplementedError("isspacep.const");
  op->handler = &IsInSpaceHandler;
  op->data = WindowOf(space);
  SetInfo(decoder, OpClass::kInteger);
  ASSAY_ASSIGN_OR_RETURN(op->dst, decoder->PredicateDestination(instruction.operands[0]));
  ASSAY_ASSIGN_OR_RETURN(op->a, decoder->Source(instruction.operands[1], Type::kU64));
  return absl::OkStatus();
}

}  // namespace

void AddMoveOps(OpTable* table) {
  table->Add("mov", DecodeMove);
  table->Add("cvta", DecodeConvertAddress);
  table->Add("isspacep", DecodeIsInSpace);
}

}  // namespace assay::emulator
