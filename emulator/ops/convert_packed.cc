// cvt that packs or unpacks: two numbers to f16x2, bf16x2, e4m3x2 or e5m2x2, and back
// (PTX ISA 9.7.9.21), and cvt.pack of integers (9.7.9.22).
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/status.h"
#include "emulator/ops/convert_passes.h"
#include "emulator/ops/decode.h"
#include "emulator/ops/half_lanes.h"
#include "emulator/ops/handlers.h"
#include "emulator/ops/rounding.h"

namespace assay::emulator {
namespace {

constexpr uint8_t kRelu = 1;
constexpr uint8_t kFinite = 2;

enum class Packed : uint8_t { kF32, kF16, kBF16, kE4M3, kE5M2 };  // kF32: two registers

// What a handler does; lies in op.data.
struct Form {
  Packed from = Packed::kF32;
  Packed to = Packed::kF16;
  Rounding rounding = Rounding::kNearest;
  uint8_t flags = 0;
  uint32_t unused = 0;
};
static_assert(sizeof(Form) == sizeof(uint64_t));

FloatFormat FormatOf(Packed packed) {
  switch (packed) {
    case Packed::kF16:
      return FloatFormat::kF16;
    case Packed::kBF16:
      return FloatFormat::kBF16;
    case Packed::kE4M3:
      return FloatFormat::kE4M3;
    case Packed::kE5M2:
      return FloatFormat::kE5M2;
    default:
      return FloatFormat::kF32;
  }
}

double E4M3ToDouble(uint32_t bits) {
  const uint32_t magnitude = bits & 0x7f;
  if (magnitude == 0x7f) return DoubleOf(0x7ff8'0000'0000'0000u);
  const auto fraction = static_cast<double>(magnitude & 7);
  const uint32_t exponent = magnitude >> 3;
  const double value = exponent == 0
                           ? fraction * 0x1p-9
                           : (8.0 + fraction) * static_cast<double>(1u << exponent) * 0x1p-10;
  return (bits & 0x80) != 0 ? -value : value;
}

// One half of the packed sources as doubles. `high`: the upper one, or the first of two registers.
void TakeHalf(const Warp* warp, const Op& op, Packed from, bool high, ConvertBuffer* buffer) {
  if (from == Packed::kF32) {
    TakeLanes(warp, high ? op.a : op.b, 4, Type::kB32, buffer);
    BitsToDouble(Type::kF32, false, buffer);
    return;
  }
  const bool bytes = from == Packed::kE4M3 || from == Packed::kE5M2;
  TakeLanes(warp, op.a, bytes ? 2 : 4, bytes ? Type::kB16 : Type::kB32, buffer);
  const int bits = bytes ? 8 : 16;
  const uint64_t ones = (uint64_t{1} << bits) - 1;
  for (uint64_t& value : buffer->bits) value = value >> (high ? bits : 0) & ones;
  switch (from) {
    case Packed::kF16:
      return BitsToDouble(Type::kF16, false, buffer);
    case Packed::kBF16:
      return BitsToDouble(Type::kBF16, false, buffer);
    case Packed::kE4M3:
      for (uint64_t& value : buffer->bits) {
        value = BitsOfDouble(E4M3ToDouble(static_cast<uint32_t>(value)));
      }
      return;
    default:
      // e5m2 is f16 without its lower eight bits.
      for (uint64_t& value : buffer->bits) value <<= 8;
      return BitsToDouble(Type::kF16, false, buffer);
  }
}

void PackedHandler(Warp* warp, const Op& op, uint32_t mask) {
  const auto form = std::bit_cast<Form>(op.data);
  const bool bytes = form.to == Packed::kE4M3 || form.to == Packed::kE5M2;
  ConvertBuffer halves[2];  // lower, upper
  for (int half = 0; half < 2; ++half) {
    ConvertBuffer* const buffer = &halves[half];
    TakeHalf(warp, op, form.from, half == 1, buffer);
    if ((form.flags & kRelu) != 0) ReluPass(buffer);
    DoubleToBits(FormatOf(form.to), form.rounding, (form.flags & kFinite) != 0, buffer);
  }
  const int shift = bytes ? 8 : 16;
  for (int i = 0; i < kLanes; ++i) halves[0].bits[i] |= halves[1].bits[i] << shift;
  PutLanes(warp, op.dst, bytes ? 2 : 4, mask, halves[0]);
}

// The common form: two floats to the nearest f16 or bf16.
template <typename Format>
void PackFloatsHandler(Warp* warp, const Op& op, uint32_t mask) {
  HalfFloats values;
  HalfBits halves[2];  // lower, upper
  std::memcpy(values.values, Lanes<uint32_t>(warp, op.b), kLanes * sizeof(float));
  Format::template Narrow<kLanes>(values, &halves[0]);
  std::memcpy(values.values, Lanes<uint32_t>(warp, op.a), kLanes * sizeof(float));
  Format::template Narrow<kLanes>(values, &halves[1]);
  uint32_t* const to = Lanes<uint32_t>(warp, op.dst);
  const uint16_t* const low = halves[0].values;
  const uint16_t* const high = halves[1].values;
  EachLane(mask, [=](int i) { to[i] = low[i] | uint32_t{high[i]} << 16; });
}

Handler PickPacked(const Form& form) {
  const bool plain = form.flags == 0 && form.rounding == Rounding::kNearest;
  if (form.from == Packed::kF32 && plain && form.to == Packed::kF16) {
    return &PackFloatsHandler<F16Lanes>;
  }
  if (form.from == Packed::kF32 && plain && form.to == Packed::kBF16) {
    return &PackFloatsHandler<BF16Lanes>;
  }
  return &PackedHandler;
}

std::optional<Packed> TakePacked(Modifiers* modifiers) {
  if (modifiers->Take("f16x2")) return Packed::kF16;
  if (modifiers->Take("bf16x2")) return Packed::kBF16;
  if (modifiers->Take("e4m3x2")) return Packed::kE4M3;
  if (modifiers->Take("e5m2x2")) return Packed::kE5M2;
  if (modifiers->Take("f32")) return Packed::kF32;
  return std::nullopt;
}

bool IsByte(Packed packed) { return packed == Packed::kE4M3 || packed == Packed::kE5M2; }

bool ValidForm(const Form& form) {
  const bool finite = (form.flags & kFinite) != 0;
  if (IsByte(form.to)) {
    return finite && form.rounding == Rounding::kNearest && !IsByte(form.from);
  }
  if (IsByte(form.from)) {
    return form.to == Packed::kF16 && !finite && form.rounding == Rounding::kNearest;
  }
  const bool mode = form.rounding == Rounding::kNearest || form.rounding == Rounding::kZero;
  return form.from == Packed::kF32 && form.to != Packed::kF32 && mode;
}

// cvt.pack: op.c holds what fills the upper bits, op.extra the bits of a part and its sign.
constexpr uint32_t kSigned = 256;
constexpr uint32_t kFill = 512;

void PackIntegersHandler(Warp* warp, const Op& op, uint32_t mask) {
  uint32_t* const to = Lanes<uint32_t>(warp, op.dst);
  const uint32_t* const a = Lanes<uint32_t>(warp, op.a);
  const uint32_t* const b = Lanes<uint32_t>(warp, op.b);
  const bool fill = (op.extra & kFill) != 0;
  const uint32_t* const c = fill ? Lanes<uint32_t>(warp, op.c) : b;
  const uint32_t bits = op.extra & 255;
  const bool is_signed = (op.extra & kSigned) != 0;
  const int32_t most = static_cast<int32_t>((1u << (is_signed ? bits - 1 : bits)) - 1);
  const int32_t least = is_signed ? -most - 1 : 0;
  const uint32_t ones = (1u << bits) - 1;
  EachLane(mask, [=](int i) {
    const auto high = static_cast<uint32_t>(std::clamp(static_cast<int32_t>(a[i]), least, most));
    const auto low = static_cast<uint32_t>(std::clamp(static_cast<int32_t>(b[i]), least, most));
    const uint32_t both = (low & ones) | (high & ones) << bits;
    to[i] = fill ? both | c[i] << (2 * bits) : both;
  });
}

}  // namespace

absl::Status DecodePackedConvert(const Instruction& instruction, Decoder* decoder, Op* op) {
  Modifiers modifiers(instruction);
  Form form;
  if (!TakeRounding(&modifiers, &form.rounding)) {
    return absl::UnimplementedError("a packed conversion without .rn or .rz");
  }
  for (int i = 0; i < 2; ++i) {
    if ((form.flags & kRelu) == 0 && modifiers.Take("relu")) form.flags |= kRelu;
    if ((form.flags & kFinite) == 0 && modifiers.Take("satfinite")) form.flags |= kFinite;
  }
  const std::optional<Packed> to = TakePacked(&modifiers);
  const std::optional<Packed> from = to.has_value() ? TakePacked(&modifiers) : std::nullopt;
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  if (!from.has_value()) return absl::UnimplementedError("a packed conversion without two types");
  form.to = *to;
  form.from = *from;
  if (!ValidForm(form)) return absl::UnimplementedError("this packed conversion");
  op->handler = PickPacked(form);
  op->data = std::bit_cast<uint64_t>(form);
  SetInfo(decoder, OpClass::kOther);
  const Type destination = IsByte(form.to) ? Type::kB16 : Type::kB32;
  if (form.from == Packed::kF32) {
    return DecodeOperands(instruction, decoder, op, destination, {Type::kF32, Type::kF32});
  }
  return DecodeOperands(instruction, decoder, op, destination,
                        {IsByte(form.from) ? Type::kB16 : Type::kB32});
}

absl::Status DecodeConvertPack(const Instruction& instruction, Decoder* decoder, Op* op) {
  constexpr struct {
    const char* name;
    uint32_t bits;
    bool is_signed;
  } kParts[] = {{"u16", 16, false}, {"s16", 16, true}, {"u8", 8, false}, {"s8", 8, true},
                {"u4", 4, false},   {"s4", 4, true},   {"u2", 2, false}, {"s2", 2, true}};
  Modifiers modifiers(instruction);
  if (!modifiers.Take("pack") || !modifiers.Take("sat")) {
    return absl::UnimplementedError("cvt.pack without .sat");
  }
  for (const auto& part : kParts) {
    if (op->extra != 0 || !modifiers.Take(part.name)) continue;
    op->extra = part.bits | (part.is_signed ? kSigned : 0) | (part.bits < 16 ? kFill : 0);
  }
  if (op->extra == 0 || !modifiers.Take("s32")) {
    return absl::UnimplementedError("cvt.pack of these types");
  }
  const bool fill = (op->extra & kFill) != 0;
  if (fill && !modifiers.Take("b32")) return absl::UnimplementedError("cvt.pack of these types");
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  op->handler = &PackIntegersHandler;
  SetInfo(decoder, OpClass::kInteger);
  if (fill) {
    return DecodeOperands(instruction, decoder, op, Type::kB32,
                          {Type::kS32, Type::kS32, Type::kB32});
  }
  return DecodeOperands(instruction, decoder, op, Type::kB32, {Type::kS32, Type::kS32});
}

}  // namespace assay::emulator
