// Dot products of bytes (PTX ISA 9.7.1.23, 9.7.1.24) and video instructions (9.7.18), those without
// selectors of bytes.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "emulator/ops/decode.h"
#include "emulator/ops/handlers.h"
#include "emulator/ops/integer_lanes.h"
#include "emulator/ops/ops.h"

namespace assay::emulator {
namespace {

// Part `index` of `value`, which has parts of kBits.
template <int kBits, bool kSigned>
inline int32_t Part(uint32_t value, int index) {
  const uint32_t top = value << (32 - kBits * (index + 1));
  if constexpr (kSigned) return static_cast<int32_t>(top) >> (32 - kBits);
  return static_cast<int32_t>(top >> (32 - kBits));
}

template <bool kSignedA, bool kSignedB>
struct DotOfBytes {
  static uint32_t Apply(uint32_t a, uint32_t b, uint32_t c) {
    for (int i = 0; i < 4; ++i) {
      c += static_cast<uint32_t>(Part<8, kSignedA>(a, i) * Part<8, kSignedB>(b, i));
    }
    return c;
  }
};

template <bool kSignedA, bool kSignedB, int kFirst>
struct DotOfHalves {
  static uint32_t Apply(uint32_t a, uint32_t b, uint32_t c) {
    for (int i = 0; i < 2; ++i) {
      c += static_cast<uint32_t>(Part<16, kSignedA>(a, i) * Part<8, kSignedB>(b, kFirst + i));
    }
    return c;
  }
};

template <typename Operation>
constexpr Handler kTernary = &TernaryHandler<Operation, uint32_t, uint32_t>;

template <bool kSignedA, bool kSignedB>
Handler PickDot(bool bytes, bool high) {
  if (bytes) return kTernary<DotOfBytes<kSignedA, kSignedB>>;
  return high ? kTernary<DotOfHalves<kSignedA, kSignedB, 2>>
              : kTernary<DotOfHalves<kSignedA, kSignedB, 0>>;
}

// u32 or s32, and whether it is the latter.
absl::Status TakeSign(Modifiers* modifiers, bool* is_signed) {
  const Type type = modifiers->TakeType();
  *is_signed = type == Type::kS32;
  if (type != Type::kS32 && type != Type::kU32) return UnknownType("an operand", type);
  return absl::OkStatus();
}

absl::Status DecodeDot(const Instruction& instruction, Decoder* decoder, Op* op) {
  Modifiers modifiers(instruction);
  const bool bytes = instruction.mnemonic == "dp4a";
  const bool high = !bytes && modifiers.Take("hi");
  if (!bytes && !high && !modifiers.Take("lo")) {
    return absl::UnimplementedError("dp2a without .lo or .hi");
  }
  bool signed_a = false;
  bool signed_b = false;
  ASSAY_RETURN_IF_ERROR(TakeSign(&modifiers, &signed_a));
  ASSAY_RETURN_IF_ERROR(TakeSign(&modifiers, &signed_b));
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  if (signed_a) {
    op->handler = signed_b ? PickDot<true, true>(bytes, high) : PickDot<true, false>(bytes, high);
  } else {
    op->handler = signed_b ? PickDot<false, true>(bytes, high) : PickDot<false, false>(bytes, high);
  }
  SetInfo(decoder, OpClass::kInteger);
  return DecodeOperands(instruction, decoder, op, Type::kB32, {Type::kB32, Type::kB32, Type::kB32});
}

// What op.extra says of a video instruction.
constexpr uint32_t kSignedA = 1;
constexpr uint32_t kSignedB = 2;
constexpr uint32_t kSignedResult = 4;
constexpr uint32_t kSaturate = 8;

enum class Second { kNone, kAdd, kMin, kMax };

struct VideoAdd {
  static int64_t Apply(int64_t a, int64_t b) { return a + b; }
};
struct VideoSubtract {
  static int64_t Apply(int64_t a, int64_t b) { return a - b; }
};
struct VideoDifference {
  static int64_t Apply(int64_t a, int64_t b) { return a < b ? b - a : a - b; }
};
struct VideoMin {
  static int64_t Apply(int64_t a, int64_t b) { return std::min(a, b); }
};
struct VideoMax {
  static int64_t Apply(int64_t a, int64_t b) { return std::max(a, b); }
};
struct VideoAverage {
  static int64_t Apply(int64_t a, int64_t b) { return (a + b + (a + b >= 0 ? 1 : 0)) >> 1; }
};

inline int64_t Clamp(int64_t value, int bits, bool is_signed) {
  const int64_t high = (int64_t{1} << (is_signed ? bits - 1 : bits)) - 1;
  const int64_t low = is_signed ? -high - 1 : 0;
  return std::clamp(value, low, high);
}

inline int64_t PartOf(uint32_t value, int index, int bits, bool is_signed) {
  const int64_t part = value >> (index * bits) & ((int64_t{1} << bits) - 1);
  return is_signed && (part >> (bits - 1)) != 0 ? part - (int64_t{1} << bits) : part;
}

// kParts results side by side, or, with kSum, their sum on top of c. One part is the scalar form.
template <typename Operation, int kParts, Second kSecond>
void VideoHandler(Warp* warp, const Op& op, uint32_t mask) {
  constexpr int kBits = 32 / kParts;
  uint32_t* const to = Lanes<uint32_t>(warp, op.dst);
  const uint32_t* const a = Lanes<uint32_t>(warp, op.a);
  const uint32_t* const b = Lanes<uint32_t>(warp, op.b);
  const uint32_t* const c = kSecond == Second::kNone ? b : Lanes<uint32_t>(warp, op.c);
  const bool signed_a = (op.extra & kSignedA) != 0;
  const bool signed_b = (op.extra & kSignedB) != 0;
  const bool signed_result = (op.extra & kSignedResult) != 0;
  const bool saturate = (op.extra & kSaturate) != 0;
  EachLane(mask, [=](int lane) {
    uint32_t result = kSecond == Second::kAdd ? c[lane] : 0;
    for (int i = 0; i < kParts; ++i) {
      int64_t value = Operation::Apply(PartOf(a[lane], i, kBits, signed_a),
                                       PartOf(b[lane], i, kBits, signed_b));
      if (saturate) value = Clamp(value, kBits, signed_result);
      if constexpr (kSecond == Second::kAdd) {
        result += static_cast<uint32_t>(value);
      } else {
        const uint32_t part_mask = 0xffffffffu >> (32 - kBits);
        result |= (static_cast<uint32_t>(value) & part_mask) << (i * kBits);
      }
    }
    if constexpr (kSecond == Second::kMin || kSecond == Second::kMax) {
      const int64_t left = PartOf(result, 0, 32, signed_result);
      const int64_t right = PartOf(c[lane], 0, 32, signed_result);
      const bool take_right = kSecond == Second::kMin ? right < left : right > left;
      result = take_right ? c[lane] : result;
    }
    to[lane] = result;
  });
}

template <typename Operation>
Handler PickVideo(int parts, Second second) {
  if (parts == 4) {
    return second == Second::kAdd ? &VideoHandler<Operation, 4, Second::kAdd>
                                  : &VideoHandler<Operation, 4, Second::kNone>;
  }
  if (parts == 2) {
    return second == Second::kAdd ? &VideoHandler<Operation, 2, Second::kAdd>
                                  : &VideoHandler<Operation, 2, Second::kNone>;
  }
  switch (second) {
    case Second::kNone:
      return &VideoHandler<Operation, 1, Second::kNone>;
    case Second::kAdd:
      return &VideoHandler<Operation, 1, Second::kAdd>;
    case Second::kMin:
      return &VideoHandler<Operation, 1, Second::kMin>;
    case Second::kMax:
      return &VideoHandler<Operation, 1, Second::kMax>;
  }
  return nullptr;
}

Handler PickVideo(std::string_view operation, int parts, Second second) {
  if (operation == "vadd") return PickVideo<VideoAdd>(parts, second);
  if (operation == "vsub") return PickVideo<VideoSubtract>(parts, second);
  if (operation == "vabsdiff") return PickVideo<VideoDifference>(parts, second);
  if (operation == "vmin") return PickVideo<VideoMin>(parts, second);
  if (operation == "vmax") return PickVideo<VideoMax>(parts, second);
  return parts > 1 ? PickVideo<VideoAverage>(parts, second) : nullptr;
}

absl::Status DecodeVideo(const Instruction& instruction, Decoder* decoder, Op* op) {
  std::string_view operation = instruction.mnemonic;
  int parts = 1;
  if (operation.back() == '2' || operation.back() == '4') {
    parts = operation.back() - '0';
    operation.remove_suffix(1);
  }
  Modifiers modifiers(instruction);
  bool signed_result = false;
  bool signed_a = false;
  bool signed_b = false;
  ASSAY_RETURN_IF_ERROR(TakeSign(&modifiers, &signed_result));
  ASSAY_RETURN_IF_ERROR(TakeSign(&modifiers, &signed_a));
  ASSAY_RETURN_IF_ERROR(TakeSign(&modifiers, &signed_b));
  const bool saturate = modifiers.Take("sat");
  Second second = Second::kNone;
  if (parts == 1 || !saturate) {
    if (modifiers.Take("add")) second = Second::kAdd;
    if (parts == 1 && modifiers.Take("min")) second = Second::kMin;
    if (parts == 1 && modifiers.Take("max")) second = Second::kMax;
  }
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  op->handler = PickVideo(operation, parts, second);
  op->extra = (signed_a ? kSignedA : 0) | (signed_b ? kSignedB : 0) |
              (signed_result ? kSignedResult : 0) | (saturate ? kSaturate : 0);
  SetInfo(decoder, OpClass::kInteger);
  // The 2- and 4-way forms always name c, though every part of it is replaced.
  if (parts == 1 && second == Second::kNone) {
    return DecodeOperands(instruction, decoder, op, Type::kB32, {Type::kB32, Type::kB32});
  }
  return DecodeOperands(instruction, decoder, op, Type::kB32, {Type::kB32, Type::kB32, Type::kB32});
}

}  // namespace

void AddVideoOps(OpTable* table) {
  table->Add("dp4a", DecodeDot);
  table->Add("dp2a", DecodeDot);
  for (const std::string_view operation : {"vadd", "vsub", "vabsdiff", "vmin", "vmax"}) {
    table->Add(operation, DecodeVideo);
    table->Add(std::string(operation) + "2", DecodeVideo);
    table->Add(std::string(operation) + "4", DecodeVideo);
  }
  table->Add("vavrg2", DecodeVideo);
  table->Add("vavrg4", DecodeVideo);
}

}  // namespace assay::emulator
