// What the arithmetic files share when they decode.
#ifndef ASSAY_EMULATOR_OPS_DECODE_H_
#define ASSAY_EMULATOR_OPS_DECODE_H_

#include <initializer_list>

#include "absl/status/status.h"
#include "emulator/program/decoder.h"

namespace assay::emulator {

// Reads a destination of type `destination` and one source for each of `sources` into op->dst, a,
// b, c and d. INVALID_ARGUMENT unless the instruction has exactly those operands.
absl::Status DecodeOperands(const Instruction& instruction, Decoder* decoder, Op* op,
                            Type destination, std::initializer_list<Type> sources);

// UNIMPLEMENTED: `what` is not done for `type`.
absl::Status UnknownType(std::string_view what, Type type);

// The untyped form as wide as `type`, so that integer constants are taken as bits.
Type BitsOf(Type type);

void SetInfo(Decoder* decoder, OpClass op_class, int flops = 0);

// Decode functions of the shared mnemonics, by kind of type; arithmetic.cc chooses. The mnemonic
// is instruction.mnemonic.
absl::Status DecodeInteger(const Instruction& instruction, Decoder* decoder, Op* op);
absl::Status DecodeCarry(const Instruction& instruction, Decoder* decoder, Op* op);
absl::Status DecodeFloat(const Instruction& instruction, Decoder* decoder, Op* op);
absl::Status DecodeMinMax(const Instruction& instruction, Decoder* decoder, Op* op);
absl::Status DecodeHalf(const Instruction& instruction, Decoder* decoder, Op* op);
absl::Status DecodeApproximate(const Instruction& instruction, Decoder* decoder, Op* op);
absl::Status DecodePredicateLogic(const Instruction& instruction, Decoder* decoder, Op* op);
absl::Status DecodePackedConvert(const Instruction& instruction, Decoder* decoder, Op* op);
absl::Status DecodeConvertPack(const Instruction& instruction, Decoder* decoder, Op* op);

// The type that an instruction works on: its last modifier; kNone when that is no type.
Type LastType(const Instruction& instruction);

inline bool IsHalf(Type type) {
  return type == Type::kF16 || type == Type::kF16x2 || type == Type::kBF16 || type == Type::kBF16x2;
}
inline bool IsFloat(Type type) { return type == Type::kF32 || type == Type::kF64; }

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_OPS_DECODE_H_
