// mma and wmma.mma: decoding, and the way between registers and matrices.
#include "emulator/ops/mma.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "emulator/execute/warp.h"
#include "emulator/ops/mma_dot.h"
#include "emulator/ops/ops.h"

namespace assay::emulator {
namespace {

struct Form {
  Element element;
  Tile tile;
};
constexpr Form kMmaForms[] = {
    {Element::kF16, {16, 8, 8}},   {Element::kF16, {16, 8, 16}},  {Element::kBF16, {16, 8, 8}},
    {Element::kBF16, {16, 8, 16}}, {Element::kTF32, {16, 8, 4}},  {Element::kTF32, {16, 8, 8}},
    {Element::kE4M3, {16, 8, 16}}, {Element::kE4M3, {16, 8, 32}}, {Element::kS8, {8, 8, 16}},
    {Element::kS8, {16, 8, 16}},   {Element::kS8, {16, 8, 32}},   {Element::kS4, {8, 8, 32}},
    {Element::kS4, {16, 8, 32}},   {Element::kS4, {16, 8, 64}},   {Element::kB1, {8, 8, 128}},
    {Element::kB1, {16, 8, 128}},  {Element::kB1, {16, 8, 256}},  {Element::kF64, {8, 8, 4}},
    {Element::kF64, {16, 8, 4}},   {Element::kF64, {16, 8, 8}},   {Element::kF64, {16, 8, 16}},
};
constexpr Form kWmmaForms[] = {
    {Element::kF16, {16, 16, 16}},  {Element::kF16, {32, 8, 16}},  {Element::kF16, {8, 32, 16}},
    {Element::kBF16, {16, 16, 16}}, {Element::kBF16, {32, 8, 16}}, {Element::kBF16, {8, 32, 16}},
    {Element::kS8, {16, 16, 16}},   {Element::kS8, {32, 8, 16}},   {Element::kS8, {8, 32, 16}},
    {Element::kTF32, {16, 16, 8}},  {Element::kF64, {8, 8, 4}},    {Element::kS4, {8, 8, 32}},
    {Element::kB1, {8, 8, 128}},
};

// Elements that stand in the same forms.
Element FamilyOf(Element element) {
  switch (element) {
    case Element::kU8:
      return Element::kS8;
    case Element::kU4:
      return Element::kS4;
    case Element::kE5M2:
      return Element::kE4M3;
    default:
      return element;
  }
}

bool IsInteger(Element element) {
  return element == Element::kB1 || FamilyOf(element) == Element::kS8 ||
         FamilyOf(element) == Element::kS4;
}

template <size_t kCount>
bool HasForm(const Form (&forms)[kCount], const Tile& tile, Element element) {
  return std::any_of(std::begin(forms), std::end(forms), [&](const Form& form) {
    return form.element == FamilyOf(element) && form.tile.m == tile.m && form.tile.n == tile.n &&
           form.tile.k == tile.k;
  });
}

// What a handler needs of its instruction, in Op::data. Op::list is the registers of d, a, b and c.
struct Plan {
  Tile tile;
  Element a = Element::kNone;
  Element b = Element::kNone;
  uint8_t arch = 0;
  uint8_t flags = 0;
};
static_assert(sizeof(Plan) == sizeof(uint64_t));

enum PlanFlag : uint8_t {
  kHalfC = 1,
  kHalfD = 2,
  kSaturate = 4,
  kXorPopc = 8,
  kAndPopc = 16,
};

Element AccumulatorOf(Element element, bool half) {
  if (element == Element::kF64) return Element::kF64;
  if (IsInteger(element)) return Element::kS32;
  return half ? Element::kF16 : Element::kF32;
}

size_t AccumulatorRegisters(const Tile& tile, bool half) {
  return static_cast<size_t>(AccumulatorsOf(tile).per_lane()) / (half ? 2 : 1);
}

struct Operands {
  const uint32_t* d;
  const uint32_t* rows;     // of the multiplicand whose rows are the tile's
  const uint32_t* columns;  // of the other
  const uint32_t* c;
  Multiplicand row_shape;
  Multiplicand column_shape;
  Accumulators accumulators;
};

Operands OperandsOf(const Warp* warp, const Op& op, const Plan& plan) {
  const int bits = ElementBits(plan.a);
  const Multiplicand a = MultiplicandOf(plan.tile, false, bits);
  const Multiplicand b = MultiplicandOf(plan.tile, true, bits);
  const uint32_t* const list = OpList(warp, op);
  const uint32_t* const first = list + AccumulatorRegisters(plan.tile, (plan.flags & kHalfD) != 0);
  const uint32_t* const second = first + a.registers();
  Operands operands = {
      list, first, second, second + b.registers(), a, b, AccumulatorsOf(plan.tile)};
  if (plan.tile.transposed()) {
    std::swap(operands.rows, operands.columns);
    std::swap(operands.row_shape, operands.column_shape);
  }
  return operands;
}

MmaProblem ProblemOf(const Plan& plan) {
  MmaProblem problem;
  problem.rows = plan.tile.rows();
  problem.columns = plan.tile.columns();
  problem.k = plan.tile.k;
  problem.a = plan.tile.transposed() ? plan.b : plan.a;
  problem.b = plan.tile.transposed() ? plan.a : plan.b;
  problem.c = AccumulatorOf(plan.a, (plan.flags & kHalfC) != 0);
  problem.d = AccumulatorOf(plan.a, (plan.flags & kHalfD) != 0);
  problem.arch = plan.arch;
  problem.saturate = (plan.flags & kSaturate) != 0;
  if ((plan.flags & kXorPopc) != 0) problem.product = BitProduct::kXor;
  if ((plan.flags & kAndPopc) != 0) problem.product = BitProduct::kAnd;
  return problem;
}

template <auto kMultiply>
void MmaHandler(Warp* warp, const Op& op, uint32_t mask) {
  if (!MeetAligned(warp, op, mask)) return;
  const auto plan = std::bit_cast<Plan>(op.data);
  const Operands operands = OperandsOf(warp, op, plan);
  alignas(64) uint32_t rows[kTileWordsMax];
  alignas(64) uint32_t columns[kTileWordsMax];
  alignas(64) uint32_t values[kTileAccumulatorsMax];
  GatherMultiplicand(warp, operands.rows, operands.row_shape, rows);
  GatherMultiplicand(warp, operands.columns, operands.column_shape, columns);
  if ((plan.flags & kHalfC) != 0) {
    GatherHalfAccumulators(warp, operands.c, operands.accumulators, values);
  } else {
    GatherAccumulators(warp, operands.c, operands.accumulators, values);
  }
  kMultiply(ProblemOf(plan), rows, columns, values);
  if ((plan.flags & kHalfD) != 0) {
    ScatterHalfAccumulators(warp, operands.d, operands.accumulators, mask, values);
  } else {
    ScatterAccumulators(warp, operands.d, operands.accumulators, mask, values);
  }
}

void DoubleMmaHandler(Warp* warp, const Op& op, uint32_t mask) {
  if (!MeetAligned(warp, op, mask)) return;
  const auto plan = std::bit_cast<Plan>(op.data);
  const Operands operands = OperandsOf(warp, op, plan);
  uint64_t rows[kTileWordsMax];
  uint64_t columns[kTileWordsMax];
  uint64_t values[kTileAccumulatorsMax];
  GatherMultiplicand(warp, operands.rows, operands.row_shape, rows);
  GatherMultiplicand(warp, operands.columns, operands.column_shape, columns);
  GatherAccumulators(warp, operands.c, operands.accumulators, values);
  MultiplyDouble(ProblemOf(plan), rows, columns, values);
  ScatterAccumulators(warp, operands.d, operands.accumulators, mask, values);
}

// What stands between the layouts and the end, in the order in which both instructions have it.
struct Types {
  Element d = Element::kNone;
  Element a = Element::kNone;
  Element b = Element::kNone;
  Element c = Element::kNone;
};

absl::Status TakeElement(Modifiers* modifiers, Element* element) {
  *element = ParseElement(modifiers->current());
  if (*element == Element::kNone) return UnknownModifier("element type", *modifiers);
  modifiers->Skip();
  return absl::OkStatus();
}

// Four types, or for wmma on f16 those of d and c alone.
absl::Status TakeTypes(bool wmma, Modifiers* modifiers, Types* types) {
  ASSAY_RETURN_IF_ERROR(TakeElement(modifiers, &types->d));
  ASSAY_RETURN_IF_ERROR(TakeElement(modifiers, &types->a));
  if (wmma && ParseElement(modifiers->current()) == Element::kNone) {
    types->c = types->a;
    types->a = types->b = Element::kF16;
    return absl::OkStatus();
  }
  ASSAY_RETURN_IF_ERROR(TakeElement(modifiers, &types->b));
  return TakeElement(modifiers, &types->c);
}

absl::Status CheckTypes(const Types& types, const Tile& tile, bool wmma) {
  const bool half_allowed = types.a == Element::kF16 || IsFp8(types.a);
  const auto fits = [&](Element accumulator) {
    return accumulator == AccumulatorOf(types.a, false) ||
           (half_allowed && accumulator == Element::kF16);
  };
  const bool same = wmma ? types.a == types.b : FamilyOf(types.a) == FamilyOf(types.b);
  const bool mixed = wmma && types.a == Element::kF16;
  const bool known = wmma ? HasForm(kWmmaForms, tile, types.a) : HasForm(kMmaForms, tile, types.a);
  if (known && same && fits(types.c) && fits(types.d) && (mixed || types.c == types.d)) {
    return absl::OkStatus();
  }
  return absl::UnimplementedError(
      absl::StrCat("no product of shape m", tile.m, "n", tile.n, "k", tile.k, " with types ",
                   std::string(ElementName(types.d)), ".", std::string(ElementName(types.a)), ".",
                   std::string(ElementName(types.b)), ".", std::string(ElementName(types.c))));
}

absl::Status TakeBitProduct(Modifiers* modifiers, uint8_t* flags) {
  if (modifiers->Take("xor")) {
    *flags |= kXorPopc;
  } else if (modifiers->Take("and")) {
    *flags |= kAndPopc;
  } else {
    return absl::OkStatus();
  }
  return TakeModifier("popc", modifiers);
}

absl::Status CheckFlags(const Types& types, uint8_t flags) {
  const bool bit_product = (flags & (kXorPopc | kAndPopc)) != 0;
  if (bit_product != (types.a == Element::kB1)) {
    return absl::UnimplementedError(".xor.popc or .and.popc belongs to b1, and only to it");
  }
  const bool may_saturate = IsInteger(types.a) && types.a != Element::kB1;
  if ((flags & kSaturate) != 0 && !may_saturate) {
    return absl::UnimplementedError(".satfinite of types that are no 4- or 8-bit integers");
  }
  return absl::OkStatus();
}

absl::Status DecodeRegisters(const Instruction& instruction, const Types& types, bool wmma,
                             const Tile& tile, Decoder* decoder, Op* op) {
  ASSAY_RETURN_IF_ERROR(CheckOperandCount(instruction, 4, 4));
  const auto& operands = instruction.operands;
  std::vector<uint32_t> list;
  ASSAY_RETURN_IF_ERROR(DecodeDestinations(operands[0], FragmentType(types.d),
                                           AccumulatorRegisters(tile, types.d == Element::kF16),
                                           decoder, &list));
  for (const bool second : {false, true}) {
    const Element element = second ? types.b : types.a;
    const Multiplicand shape = MultiplicandOf(tile, second, ElementBits(element));
    const size_t begin = list.size();
    const int count = wmma ? WmmaRegisters(shape, element) : shape.registers();
    ASSAY_RETURN_IF_ERROR(DecodeSources(operands[second ? 2 : 1], FragmentType(element),
                                        static_cast<size_t>(count), decoder, &list));
    // The copies are not read.
    list.resize(begin + static_cast<size_t>(shape.registers()));
  }
  ASSAY_RETURN_IF_ERROR(DecodeSources(operands[3], FragmentType(types.c),
                                      AccumulatorRegisters(tile, types.c == Element::kF16), decoder,
                                      &list));
  op->list = decoder->AddList(list);
  op->list_size = static_cast<uint16_t>(list.size());
  return absl::OkStatus();
}

absl::Status FinishDecode(const Instruction& instruction, const Types& types, bool wmma,
                          const Tile& tile, uint8_t flags, Decoder* decoder, Op* op) {
  ASSAY_RETURN_IF_ERROR(CheckTypes(types, tile, wmma));
  ASSAY_RETURN_IF_ERROR(CheckFlags(types, flags));
  if (types.c == Element::kF16) flags |= kHalfC;
  if (types.d == Element::kF16) flags |= kHalfD;
  ASSAY_RETURN_IF_ERROR(DecodeRegisters(instruction, types, wmma, tile, decoder, op));
  Plan plan;
  plan.tile = tile;
  plan.a = types.a;
  plan.b = types.b;
  plan.arch = static_cast<uint8_t>(std::clamp(decoder->program()->mma_arch, 0, 255));
  plan.flags = flags;
  op->data = std::bit_cast<uint64_t>(plan);
  op->handler = types.a == Element::kF64 ? &DoubleMmaHandler
                : IsInteger(types.a)     ? &MmaHandler<&MultiplyInteger>
                                         : &MmaHandler<&MultiplyFloat>;
  decoder->info()->op_class = OpClass::kTensor;
  decoder->info()->flops = 2 * tile.m * tile.n * tile.k;
  return absl::OkStatus();
}

absl::Status TakeTile(Modifiers* modifiers, Tile* tile) {
  *tile = ParseTile(modifiers->current());
  if (tile->m == 0) return UnknownModifier("shape", *modifiers);
  modifiers->Skip();
  return absl::OkStatus();
}

absl::Status DecodeMma(const Instruction& instruction, Decoder* decoder, Op* op) {
  Modifiers modifiers(instruction);
  uint8_t flags = 0;
  Tile tile;
  Types types;
  ASSAY_RETURN_IF_ERROR(TakeSyncAligned(&modifiers));
  ASSAY_RETURN_IF_ERROR(TakeTile(&modifiers, &tile));
  ASSAY_RETURN_IF_ERROR(TakeModifier("row", &modifiers));
  ASSAY_RETURN_IF_ERROR(TakeModifier("col", &modifiers));
  if (modifiers.Take("satfinite")) flags |= kSaturate;
  ASSAY_RETURN_IF_ERROR(TakeTypes(false, &modifiers, &types));
  ASSAY_RETURN_IF_ERROR(TakeBitProduct(&modifiers, &flags));
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  return FinishDecode(instruction, types, false, tile, flags, decoder, op);
}

}  // namespace

absl::Status UnknownModifier(std::string_view what, const Modifiers& modifiers) {
  if (modifiers.at_end()) {
    return absl::InvalidArgumentError(absl::StrCat("no ", std::string(what), " given"));
  }
  return absl::UnimplementedError(absl::StrCat("modifier .", std::string(modifiers.current()),
                                               " where a ", std::string(what), " is expected"));
}

absl::Status TakeModifier(std::string_view name, Modifiers* modifiers) {
  if (modifiers->Take(name)) return absl::OkStatus();
  return UnknownModifier(absl::StrCat("modifier .", std::string(name)), *modifiers);
}

absl::Status TakeSyncAligned(Modifiers* modifiers) {
  ASSAY_RETURN_IF_ERROR(TakeModifier("sync", modifiers));
  return TakeModifier("aligned", modifiers);
}

namespace {

// The operands in braces, or the single one.
absl::StatusOr<std::vector<const Operand*>> Parts(const Operand& operand, size_t count) {
  std::vector<const Operand*> parts;
  if (operand.kind == Operand::Kind::kVector) {
    for (const Operand& element : operand.elements) parts.push_back(&element);
  } else {
    parts.push_back(&operand);
  }
  if (parts.size() != count) {
    return absl::InvalidArgumentError(
        absl::StrCat("an operand has ", parts.size(), " registers; ", count, " are needed"));
  }
  return parts;
}

}  // namespace

absl::Status DecodeSources(const Operand& operand, Type type, size_t count, Decoder* decoder,
                           std::vector<uint32_t>* registers) {
  ASSAY_ASSIGN_OR_RETURN(const std::vector<const Operand*> parts, Parts(operand, count));
  for (const Operand* part : parts) {
    ASSAY_ASSIGN_OR_RETURN(const uint32_t offset, decoder->Source(*part, type));
    registers->push_back(offset);
  }
  return absl::OkStatus();
}

absl::Status DecodeDestinations(const Operand& operand, Type type, size_t count, Decoder* decoder,
                                std::vector<uint32_t>* registers) {
  ASSAY_ASSIGN_OR_RETURN(const std::vector<const Operand*> parts, Parts(operand, count));
  for (const Operand* part : parts) {
    ASSAY_ASSIGN_OR_RETURN(const uint32_t offset, decoder->Destination(*part, type));
    registers->push_back(offset);
  }
  return absl::OkStatus();
}

Type FragmentType(Element element) {
  if (element == Element::kF64) return Type::kF64;
  return element == Element::kF32 ? Type::kF32 : Type::kB32;
}

bool IsWmmaTile(const Tile& tile, Element element) { return HasForm(kWmmaForms, tile, element); }

int WmmaRegisters(const Multiplicand& multiplicand, Element element) {
  return element == Element::kF16 ? 8 : multiplicand.registers();
}

absl::Status DecodeWmmaMma(const Instruction& instruction, Decoder* decoder, Op* op) {
  Modifiers modifiers(instruction);
  uint8_t flags = 0;
  Tile tile;
  Types types;
  ASSAY_RETURN_IF_ERROR(TakeModifier("mma", &modifiers));
  ASSAY_RETURN_IF_ERROR(TakeBitProduct(&modifiers, &flags));
  ASSAY_RETURN_IF_ERROR(TakeSyncAligned(&modifiers));
  // A fragment has the same layout for either order in memory.
  for (int i = 0; i < 2; ++i) {
    if (!modifiers.Take("row") && !modifiers.Take("col")) {
      return UnknownModifier("layout", modifiers);
    }
  }
  ASSAY_RETURN_IF_ERROR(TakeTile(&modifiers, &tile));
  ASSAY_RETURN_IF_ERROR(TakeTypes(true, &modifiers, &types));
  if (types.a == Element::kF64) modifiers.Take("rn");
  if (modifiers.Take("satfinite")) flags |= kSaturate;
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  return FinishDecode(instruction, types, true, tile, flags, decoder, op);
}

void AddMmaOps(OpTable* table) { table->Add("mma", &DecodeMma); }

}  // namespace assay::emulator
