// The mnemonics that integers and floating-point numbers share: each is decoded by the file that
// knows its type.
#include <string_view>

#include "emulator/ops/decode.h"
#include "emulator/ops/ops.h"

namespace assay::emulator {
namespace {

absl::Status DecodeArithmetic(const Instruction& instruction, Decoder* decoder, Op* op) {
  const Type type = LastType(instruction);
  if (instruction.Has("cc")) return DecodeCarry(instruction, decoder, op);
  if (instruction.Has("approx") || instruction.Has("full")) {
    return DecodeApproximate(instruction, decoder, op);
  }
  if (IsHalf(type)) return DecodeHalf(instruction, decoder, op);
  if (IsFloat(type)) return DecodeFloat(instruction, decoder, op);
  return DecodeInteger(instruction, decoder, op);
}

absl::Status DecodeMinOrMax(const Instruction& instruction, Decoder* decoder, Op* op) {
  const Type type = LastType(instruction);
  if (IsHalf(type)) return DecodeHalf(instruction, decoder, op);
  if (IsFloat(type)) return DecodeMinMax(instruction, decoder, op);
  return DecodeInteger(instruction, decoder, op);
}

}  // namespace

void AddArithmeticOps(OpTable* table) {
  for (const std::string_view mnemonic : {"add", "sub", "mul", "mad", "div", "neg", "abs"}) {
    table->Add(mnemonic, DecodeArithmetic);
  }
  table->Add("fma", DecodeArithmetic);
  table->Add("rcp", DecodeArithmetic);
  table->Add("sqrt", DecodeArithmetic);
  table->Add("min", DecodeMinOrMax);
  table->Add("max", DecodeMinOrMax);
}

}  // namespace assay::emulator
