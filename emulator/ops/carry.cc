// Additions that keep a carry (PTX ISA 9.7.2). The carry flag is a predicate of the program.
#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "emulator/ops/decode.h"
#include "emulator/ops/handlers.h"
#include "emulator/ops/integer_lanes.h"

namespace assay::emulator {
namespace {

// What op.extra says.
constexpr uint32_t kCarryIn = 1;
constexpr uint32_t kCarryOut = 2;

enum class Step { kAdd, kSubtract, kProductLow, kProductHigh };

// One lane: two terms, the carry that came in, and the one that goes out.
template <Step kStep, typename T, typename U = UnsignedOf<T>>
U AddWithCarry(U a, U b, U c, uint32_t carry_in, uint32_t* carry_out) {
  U result = 0;
  bool first = false;
  bool second = false;
  if constexpr (kStep == Step::kSubtract) {
    const U difference = a - b;
    result = difference - carry_in;
    first = a < b;
    second = difference < carry_in;
  } else {
    U left = a;
    U right = b;
    if constexpr (kStep != Step::kAdd) {
      left = kStep == Step::kProductLow ? ProductLow<T>(a, b) : ProductHigh<T>(a, b);
      right = c;
    }
    const U sum = left + right;
    result = sum + carry_in;
    first = sum < left;
    second = result < sum;
  }
  *carry_out = first || second ? 1 : 0;
  return result;
}

// op.d is the carry flag.
template <Step kStep, typename T>
void CarryHandler(Warp* warp, const Op& op, uint32_t mask) {
  using U = UnsignedOf<T>;
  constexpr bool kProduct = kStep == Step::kProductLow || kStep == Step::kProductHigh;
  U* const to = Lanes<U>(warp, op.dst);
  const U* const a = Lanes<U>(warp, op.a);
  const U* const b = Lanes<U>(warp, op.b);
  const U* const c = kProduct ? Lanes<U>(warp, op.c) : b;
  const uint32_t before = (op.extra & kCarryIn) != 0 ? PredicateLanes(warp, op.d) : 0;
  uint32_t after = 0;
  EachLane(mask, [&](int i) {
    uint32_t carry = 0;
    to[i] = AddWithCarry<kStep, T>(a[i], b[i], c[i], before >> i & 1, &carry);
    after |= carry << i;
  });
  if ((op.extra & kCarryOut) != 0) SetPredicate(warp, op.d, mask, after);
}

template <Step kStep>
Handler PickCarry(Type type) {
  switch (type) {
    case Type::kU32:
      return &CarryHandler<kStep, uint32_t>;
    case Type::kS32:
      return &CarryHandler<kStep, int32_t>;
    case Type::kU64:
      return &CarryHandler<kStep, uint64_t>;
    case Type::kS64:
      return &CarryHandler<kStep, int64_t>;
    default:
      return nullptr;
  }
}

}  // namespace

absl::Status DecodeCarry(const Instruction& instruction, Decoder* decoder, Op* op) {
  const std::string_view mnemonic = instruction.mnemonic;
  const bool product = mnemonic == "mad" || mnemonic == "madc";
  const bool carry_in = mnemonic == "addc" || mnemonic == "subc" || mnemonic == "madc";
  Modifiers modifiers(instruction);
  const bool high = product && modifiers.Take("hi");
  if (product && !high && !modifiers.Take("lo")) {
    return absl::UnimplementedError("a product without .lo or .hi");
  }
  const bool carry_out = modifiers.Take("cc");
  const Type type = modifiers.TakeType();
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  if (product) {
    op->handler = high ? PickCarry<Step::kProductHigh>(type) : PickCarry<Step::kProductLow>(type);
  } else if (mnemonic == "add" || mnemonic == "addc") {
    op->handler = PickCarry<Step::kAdd>(type);
  } else if (mnemonic == "sub" || mnemonic == "subc") {
    op->handler = PickCarry<Step::kSubtract>(type);
  }
  if (op->handler == nullptr) return UnknownType(mnemonic, type);
  if (product) {
    ASSAY_RETURN_IF_ERROR(DecodeOperands(instruction, decoder, op, type, {type, type, type}));
  } else {
    ASSAY_RETURN_IF_ERROR(DecodeOperands(instruction, decoder, op, type, {type, type}));
  }
  SetInfo(decoder, OpClass::kInteger);
  op->d = decoder->CarryFlag();
  op->extra = (carry_in ? kCarryIn : 0) | (carry_out ? kCarryOut : 0);
  return absl::OkStatus();
}

}  // namespace assay::emulator
