#include "emulator/ops/decode.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/strings.h"

namespace assay::emulator {

absl::Status DecodeOperands(const Instruction& instruction, Decoder* decoder, Op* op,
                            Type destination, std::initializer_list<Type> sources) {
  const size_t count = 1 + sources.size();
  ASSAY_RETURN_IF_ERROR(CheckOperandCount(instruction, count, count));
  ASSAY_ASSIGN_OR_RETURN(op->dst, decoder->Destination(instruction.operands[0], destination));
  uint32_t* const fields[] = {&op->a, &op->b, &op->c, &op->d};
  size_t next = 0;
  for (const Type type : sources) {
    ASSAY_ASSIGN_OR_RETURN(*fields[next], decoder->Source(instruction.operands[next + 1], type));
    ++next;
  }
  return absl::OkStatus();
}

absl::Status UnknownType(std::string_view what, Type type) {
  const std::string_view name = type == Type::kNone ? "no type" : TypeName(type);
  return absl::UnimplementedError(absl::StrCat(Av(what), " of ", Av(name)));
}

Type BitsOf(Type type) {
  switch (TypeBytes(type)) {
    case 1:
      return Type::kB8;
    case 2:
      return Type::kB16;
    case 4:
      return Type::kB32;
    case 8:
      return Type::kB64;
    default:
      return type;
  }
}

void SetInfo(Decoder* decoder, OpClass op_class, int flops) {
  decoder->info()->op_class = op_class;
  decoder->info()->flops = flops;
}

Type LastType(const Instruction& instruction) {
  return instruction.modifiers.empty() ? Type::kNone : ParseType(instruction.modifiers.back());
}

}  // namespace assay::emulator
