// cvt between two scalar types (PTX ISA 9.7.9.21). Common forms have loops of their own; the rest
// goes in passes.
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/status.h"
#include "emulator/ops/convert_passes.h"
#include "emulator/ops/decode.h"
#include "emulator/ops/half_lanes.h"
#include "emulator/ops/handlers.h"
#include "emulator/ops/ops.h"
#include "emulator/ops/rounding.h"

namespace assay::emulator {
namespace {

constexpr uint8_t kFlush = 1;
constexpr uint8_t kSaturate = 2;
constexpr uint8_t kRelu = 4;
constexpr uint8_t kFinite = 8;
constexpr uint8_t kIntegral = 16;

// What a handler does; lies in op.data.
struct Form {
  Type from = Type::kNone;
  Type to = Type::kNone;
  uint8_t from_width = 0;
  uint8_t to_width = 0;
  Rounding rounding = Rounding::kNearest;
  FloatFormat format = FloatFormat::kF32;  // of a floating-point result but f64
  uint8_t flags = 0;
  uint8_t rounded = 0;  // there was a floating-point rounding modifier

  bool Has(uint8_t flag) const { return (flags & flag) != 0; }
};
static_assert(sizeof(Form) == sizeof(uint64_t));

Form FormOf(const Op& op) { return std::bit_cast<Form>(op.data); }

void IntegerHandler(Warp* warp, const Op& op, uint32_t mask) {
  const Form form = FormOf(op);
  ConvertBuffer buffer;
  TakeLanes(warp, op.a, form.from_width, form.from, &buffer);
  ConvertInteger(form.from, form.to, form.Has(kSaturate), &buffer);
  PutLanes(warp, op.dst, form.to_width, mask, buffer);
}

// The last steps of a conversion to a floating-point format.
void PutFloats(Warp* warp, const Op& op, const Form& form, uint32_t mask, ConvertBuffer* buffer) {
  if (form.Has(kSaturate)) SaturatePass(buffer);
  if (form.Has(kRelu)) ReluPass(buffer);
  if (form.to != Type::kF64) {
    DoubleToBits(form.format, form.rounding, form.Has(kFinite), buffer);
    if (form.to == Type::kF32 && form.Has(kFlush)) {
      for (uint64_t& bits : buffer->bits) bits = Flush32(static_cast<uint32_t>(bits));
    }
  }
  PutLanes(warp, op.dst, form.to_width, mask, *buffer);
}

void IntegerToFloatHandler(Warp* warp, const Op& op, uint32_t mask) {
  const Form form = FormOf(op);
  ConvertBuffer buffer;
  TakeLanes(warp, op.a, form.from_width, form.from, &buffer);
  if (form.to == Type::kF64) {
    IntegerToF64(form.from, form.rounding, &buffer);
  } else {
    IntegerToDouble(form.from, &buffer);
  }
  PutFloats(warp, op, form, mask, &buffer);
}

// NaN becomes 0, and from f64 or to 64 bits the number whose top bit alone is set (PTX ISA
// 9.7.9.21, integer notes).
void FloatToIntegerHandler(Warp* warp, const Op& op, uint32_t mask) {
  const Form form = FormOf(op);
  const int bits = 8 * TypeBytes(form.to);
  const uint64_t nan = form.from != Type::kF64 && bits < 64 ? 0 : uint64_t{1} << (bits - 1);
  ConvertBuffer buffer;
  TakeLanes(warp, op.a, form.from_width, BitsOf(form.from), &buffer);
  BitsToDouble(form.from, form.Has(kFlush), &buffer);
  RoundToIntegral(form.rounding, &buffer);
  DoubleToInteger(form.to, nan, &buffer);
  ConvertInteger(form.to, form.to, false, &buffer);
  PutLanes(warp, op.dst, form.to_width, mask, buffer);
}

void FloatHandler(Warp* warp, const Op& op, uint32_t mask) {
  const Form form = FormOf(op);
  ConvertBuffer buffer;
  TakeLanes(warp, op.a, form.from_width, BitsOf(form.from), &buffer);
  BitsToDouble(form.from, form.Has(kFlush), &buffer);
  if (form.Has(kIntegral)) RoundToIntegral(form.rounding, &buffer);
  PutFloats(warp, op, form, mask, &buffer);
}

// The common forms, with registers as wide as the types.
template <typename To, typename From>
struct Resize {
  static UnsignedOf<To> Apply(UnsignedOf<From> value) {
    return static_cast<UnsignedOf<To>>(static_cast<From>(value));
  }
};

template <typename From>
struct ToF32 {
  static uint32_t Apply(uint32_t value) {
    return BitsOfFloat(static_cast<float>(static_cast<From>(value)));
  }
};

// Toward zero and limited; without a branch.
struct F32ToS32 {
  static uint32_t Apply(uint32_t bits) {
    const float value = FloatOf(bits);
    const bool inside = value >= -0x1p31f && value < 0x1p31f;
    const auto cut = static_cast<uint32_t>(static_cast<int32_t>(inside ? value : 0.0f));
    const uint32_t limit = value >= 0x1p31f ? 0x7fffffffu : (value < 0.0f ? 0x80000000u : 0);
    return inside ? cut : limit;
  }
};

struct F32ToU32 {
  static uint32_t Apply(uint32_t bits) {
    const float value = FloatOf(bits);
    const float positive = value > 0.0f ? value : 0.0f;
    const bool inside = positive < 0x1p32f;
    const auto cut = static_cast<uint32_t>(static_cast<int64_t>(inside ? positive : 0.0f));
    return inside ? cut : 0xffffffffu;
  }
};

struct F64ToF32 {
  static uint32_t Apply(uint64_t bits) {
    const auto value = static_cast<float>(DoubleOf(bits));
    return value != value ? kNan32 : BitsOfFloat(value);
  }
};
struct F32ToF64 {
  static uint64_t Apply(uint32_t bits) { return BitsOfDouble(FloatOf(bits)); }
};
template <typename From>
struct ToF64 {
  static uint64_t Apply(uint32_t value) {
    return BitsOfDouble(static_cast<double>(static_cast<From>(value)));
  }
};

struct SaturateF32 {
  static uint32_t Apply(uint32_t bits) { return BitsOfFloat(Saturate(FloatOf(bits))); }
};

// Ties go away from zero, which an addition to the magnitude does.
struct F32ToTF32 {
  static uint32_t Apply(uint32_t bits) {
    const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
    return is_nan ? kNan32 : (bits + 0x1000u) & 0xffffe000u;
  }
};

template <Rounding kRounding>
struct IntegralF32 {
  static uint32_t Apply(uint32_t bits) {
    const float value = FloatOf(bits);
    float result = 0;
    if constexpr (kRounding == Rounding::kNearest) result = __builtin_rintf(value);
    if constexpr (kRounding == Rounding::kZero) result = __builtin_truncf(value);
    if constexpr (kRounding == Rounding::kDown) result = __builtin_floorf(value);
    if constexpr (kRounding == Rounding::kUp) result = __builtin_ceilf(value);
    return value != value ? kNan32 : BitsOfFloat(result);
  }
};

Handler PickIntegralF32(Rounding rounding) {
  switch (rounding) {
    case Rounding::kZero:
      return &UnaryHandler<IntegralF32<Rounding::kZero>, uint32_t, uint32_t>;
    case Rounding::kDown:
      return &UnaryHandler<IntegralF32<Rounding::kDown>, uint32_t, uint32_t>;
    case Rounding::kUp:
      return &UnaryHandler<IntegralF32<Rounding::kUp>, uint32_t, uint32_t>;
    default:
      return &UnaryHandler<IntegralF32<Rounding::kNearest>, uint32_t, uint32_t>;
  }
}

template <typename Format>
void HalfToF32Handler(Warp* warp, const Op& op, uint32_t mask) {
  HalfBits bits;
  HalfFloats values;
  ReadHalves<false>(warp, op.a, &bits);
  Format::template Widen<kLanes>(bits, &values);
  uint32_t* const to = Lanes<uint32_t>(warp, op.dst);
  const float* const from = values.values;
  EachLane(mask, [=](int i) { to[i] = from[i] != from[i] ? kNan32 : BitsOfFloat(from[i]); });
}

template <typename Format>
void F32ToHalfHandler(Warp* warp, const Op& op, uint32_t mask) {
  HalfBits bits;
  HalfFloats values;
  std::memcpy(values.values, Lanes<uint32_t>(warp, op.a), kLanes * sizeof(float));
  Format::template Narrow<kLanes>(values, &bits);
  WriteHalves<false>(warp, op.dst, mask, bits);
}

Handler PickCommonInteger(Type from, Type to) {
  const bool from_signed = IsSigned(from);
  switch (TypeBytes(from) * 16 + TypeBytes(to)) {
    case 0x48:
      return from_signed ? &UnaryHandler<Resize<uint64_t, int32_t>, uint64_t, uint32_t>
                         : &UnaryHandler<Resize<uint64_t, uint32_t>, uint64_t, uint32_t>;
    case 0x84:
      return &UnaryHandler<Resize<uint32_t, uint64_t>, uint32_t, uint64_t>;
    case 0x24:
      return from_signed ? &UnaryHandler<Resize<uint32_t, int16_t>, uint32_t, uint16_t>
                         : &UnaryHandler<Resize<uint32_t, uint16_t>, uint32_t, uint16_t>;
    case 0x42:
      return &UnaryHandler<Resize<uint16_t, uint32_t>, uint16_t, uint32_t>;
    default:
      return nullptr;
  }
}

// To a floating-point type, to the nearest, without anything else.
Handler PickPlainFloat(Type from, Type to) {
  if (to == Type::kF32) {
    if (from == Type::kS32) return &UnaryHandler<ToF32<int32_t>, uint32_t, uint32_t>;
    if (from == Type::kU32) return &UnaryHandler<ToF32<uint32_t>, uint32_t, uint32_t>;
    if (from == Type::kF64) return &UnaryHandler<F64ToF32, uint32_t, uint64_t>;
    if (from == Type::kF16) return &HalfToF32Handler<F16Lanes>;
    if (from == Type::kBF16) return &HalfToF32Handler<BF16Lanes>;
  }
  if (to == Type::kF64) {
    if (from == Type::kS32) return &UnaryHandler<ToF64<int32_t>, uint64_t, uint32_t>;
    if (from == Type::kU32) return &UnaryHandler<ToF64<uint32_t>, uint64_t, uint32_t>;
    if (from == Type::kF32) return &UnaryHandler<F32ToF64, uint64_t, uint32_t>;
  }
  if (from == Type::kF32 && to == Type::kF16) return &F32ToHalfHandler<F16Lanes>;
  if (from == Type::kF32 && to == Type::kBF16) return &F32ToHalfHandler<BF16Lanes>;
  return nullptr;
}

Handler PickCommon(const Form& form) {
  const bool same_width =
      form.from_width == TypeBytes(form.from) && form.to_width == TypeBytes(form.to);
  if (!same_width) return nullptr;
  const bool from_float = IsFloat(form.from) || IsHalf(form.from);
  const bool to_float = IsFloat(form.to) || IsHalf(form.to) || form.to == Type::kTF32;
  if (!from_float && !to_float && form.flags == 0) return PickCommonInteger(form.from, form.to);
  if (form.flags == 0 && form.rounding == Rounding::kNearest) {
    if (const Handler handler = PickPlainFloat(form.from, form.to)) return handler;
  }
  if (form.from != Type::kF32) return nullptr;
  if (form.to == Type::kF32 && form.flags == kSaturate) {
    return &UnaryHandler<SaturateF32, uint32_t, uint32_t>;
  }
  if (form.to == Type::kF32 && form.flags == kIntegral) return PickIntegralF32(form.rounding);
  if (form.to == Type::kTF32 && form.flags == 0 && form.rounding == Rounding::kNearestAway) {
    return &UnaryHandler<F32ToTF32, uint32_t, uint32_t>;
  }
  if (form.rounding != Rounding::kZero || form.Has(kFlush)) return nullptr;
  if (form.to == Type::kS32) return &UnaryHandler<F32ToS32, uint32_t, uint32_t>;
  return form.to == Type::kU32 ? &UnaryHandler<F32ToU32, uint32_t, uint32_t> : nullptr;
}

bool TakeIntegerRounding(Modifiers* modifiers, Rounding* rounding) {
  constexpr struct {
    const char* name;
    Rounding rounding;
  } kNames[] = {{"rni", Rounding::kNearest},
                {"rzi", Rounding::kZero},
                {"rmi", Rounding::kDown},
                {"rpi", Rounding::kUp}};
  for (const auto& entry : kNames) {
    if (!modifiers->Take(entry.name)) continue;
    *rounding = entry.rounding;
    return true;
  }
  return false;
}

absl::Status TakeForm(const Instruction& instruction, Form* form) {
  Modifiers modifiers(instruction);
  if (TakeIntegerRounding(&modifiers, &form->rounding)) {
    form->flags |= kIntegral;
  } else if (TakeRounding(&modifiers, &form->rounding)) {
    form->rounded = 1;
  } else if (modifiers.Take("rna")) {
    form->rounding = Rounding::kNearestAway;
    form->rounded = 1;
  }
  constexpr struct {
    const char* name;
    uint8_t flag;
  } kFlags[] = {{"ftz", kFlush}, {"sat", kSaturate}, {"relu", kRelu}, {"satfinite", kFinite}};
  for (bool taken = true; taken;) {
    taken = false;
    for (const auto& entry : kFlags) {
      if (form->Has(entry.flag) || !modifiers.Take(entry.name)) continue;
      form->flags |= entry.flag;
      taken = true;
    }
  }
  form->to = modifiers.TakeType();
  form->from = modifiers.TakeType();
  return modifiers.Finish();
}

bool IsScalarFloat(Type type) { return IsFloat(type) || type == Type::kF16 || type == Type::kBF16; }
bool IsInteger(Type type) {
  switch (type) {
    case Type::kU8:
    case Type::kU16:
    case Type::kU32:
    case Type::kU64:
    case Type::kS8:
    case Type::kS16:
    case Type::kS32:
    case Type::kS64:
      return true;
    default:
      return false;
  }
}

FloatFormat FormatOf(Type type) {
  switch (type) {
    case Type::kF16:
      return FloatFormat::kF16;
    case Type::kBF16:
      return FloatFormat::kBF16;
    case Type::kTF32:
      return FloatFormat::kTF32;
    default:
      return FloatFormat::kF32;
  }
}

// Bits of precision, to see what needs rounding.
int PrecisionOf(Type type) {
  switch (type) {
    case Type::kF64:
      return 53;
    case Type::kF32:
      return 24;
    case Type::kF16:
      return 11;
    default:
      return 8;
  }
}

// Whether the form exists for floating-point types on both sides.
bool ValidFloat(const Form& form) {
  if (form.Has(kIntegral)) {
    return form.from == form.to && !form.Has(kRelu) && !form.Has(kFinite);
  }
  if (form.rounding == Rounding::kNearestAway && form.to != Type::kTF32) return false;
  if (form.to == Type::kTF32) {
    const bool mode = form.rounding != Rounding::kDown && form.rounding != Rounding::kUp;
    const bool away = form.rounding == Rounding::kNearestAway;
    return form.from == Type::kF32 && form.rounded != 0 && mode && !form.Has(kSaturate) &&
           !(away && form.Has(kRelu));
  }
  const bool narrow = form.to == Type::kF16 || form.to == Type::kBF16;
  if ((form.Has(kRelu) || form.Has(kFinite)) && (!narrow || form.from != Type::kF32)) return false;
  const bool loses = PrecisionOf(form.to) < PrecisionOf(form.from) ||
                     (form.from == Type::kBF16 && form.to == Type::kF16);
  return !loses || form.rounded != 0;
}

// Chooses the handler; false for a form that PTX does not have.
bool PickGeneral(const Form& form, Handler* handler) {
  const bool flush_allowed = form.from == Type::kF32 || form.to == Type::kF32;
  if (form.Has(kFlush) && !flush_allowed) return false;
  const bool to_float = IsScalarFloat(form.to) || form.to == Type::kTF32;
  if (IsInteger(form.from) && IsInteger(form.to)) {
    *handler = &IntegerHandler;
    return form.rounded == 0 && (form.flags & ~kSaturate) == 0;
  }
  if (IsInteger(form.from) && to_float && form.to != Type::kTF32) {
    *handler = &IntegerToFloatHandler;
    return form.rounded != 0 && (form.flags & (kRelu | kFinite)) == 0 &&
           form.rounding != Rounding::kNearestAway;
  }
  if (IsScalarFloat(form.from) && IsInteger(form.to)) {
    *handler = &FloatToIntegerHandler;
    return form.Has(kIntegral) && (form.flags & (kRelu | kFinite)) == 0;
  }
  if (!IsScalarFloat(form.from) || !to_float) return false;
  *handler = &FloatHandler;
  return ValidFloat(form);
}

bool IsPackedName(std::string_view name) {
  return name == "f16x2" || name == "bf16x2" || name == "e4m3x2" || name == "e5m2x2";
}

absl::Status DecodeConvert(const Instruction& instruction, Decoder* decoder, Op* op) {
  if (instruction.Has("pack")) return DecodeConvertPack(instruction, decoder, op);
  for (const std::string& modifier : instruction.modifiers) {
    if (IsPackedName(modifier)) return DecodePackedConvert(instruction, decoder, op);
  }
  Form form;
  ASSAY_RETURN_IF_ERROR(TakeForm(instruction, &form));
  if (!PickGeneral(form, &op->handler)) return UnknownType("this conversion", form.to);
  ASSAY_RETURN_IF_ERROR(CheckOperandCount(instruction, 2, 2));
  // Halves are taken as bits, so that constants are.
  const Type from = IsHalf(form.from) ? BitsOf(form.from) : form.from;
  const Type to = IsHalf(form.to) || form.to == Type::kTF32 ? BitsOf(form.to) : form.to;
  int from_width = 0;
  int to_width = 0;
  ASSAY_ASSIGN_OR_RETURN(op->dst,
                         decoder->DestinationAnyWidth(instruction.operands[0], to, &to_width));
  ASSAY_ASSIGN_OR_RETURN(op->a,
                         decoder->SourceAnyWidth(instruction.operands[1], from, &from_width));
  form.from_width = static_cast<uint8_t>(from_width);
  form.to_width = static_cast<uint8_t>(to_width);
  form.format = FormatOf(form.to);
  if (const Handler common = PickCommon(form)) op->handler = common;
  op->data = std::bit_cast<uint64_t>(form);
  const bool counted = IsInteger(form.from) && IsInteger(form.to);
  SetInfo(decoder, counted ? OpClass::kInteger : OpClass::kOther);
  return absl::OkStatus();
}

}  // namespace

void AddConvertOps(OpTable* table) { table->Add("cvt", DecodeConvert); }

}  // namespace assay::emulator
