// Operands of instructions.
#ifndef ASSAY_EMULATOR_PTX_OPERAND_H_
#define ASSAY_EMULATOR_PTX_OPERAND_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "emulator/ptx/module.h"
#include "emulator/ptx/reader.h"
#include "emulator/ptx/scope.h"

namespace assay::emulator {

// Whether `name`, with its percent sign and component as in %tid.x, is a special register (chapter
// 10 of the PTX ISA).
bool IsSpecialRegister(std::string_view name);

// Reads the operands of one instruction. Borrows both; not thread-safe.
class OperandParser {
 public:
  OperandParser(Reader* reader, Scopes* scopes) : reader_(reader), scopes_(scopes) {}

  // Up to the semicolon, which is left. With `is_call`, parentheses hold lists of operands.
  absl::Status ParseList(bool is_call, std::vector<Operand>* operands);
  // Enters the symbols of the list that ParseList read last, which has since come to its place.
  void Refer(std::vector<Operand>* operands);
  // The predicate of a guard or of !p; INVALID_ARGUMENT for anything that is no register.
  absl::Status ParsePredicate(int* reg);

 private:
  absl::Status Parse(bool is_call, Operand* operand);
  absl::Status ParseElements(std::string_view close, std::vector<Operand>* elements);
  absl::Status ParseAddress(Operand* operand);
  absl::Status ParseConstantOperand(Operand* operand);
  // Registers, special registers and symbols.
  absl::Status ParseName(Operand* operand);
  absl::Status ParseSpecial(std::string_view name, Operand* operand);
  absl::Status ParseVectorRegister(std::string_view name, const Binding& binding, Operand* operand);
  absl::Status ParsePair(Operand* operand);
  // "+4", "+-4", "-4" or nothing.
  absl::Status ParseOffset(int64_t* offset);
  void ReferFrom(std::vector<Operand>* operands, size_t* next);

  Reader* reader_;
  Scopes* scopes_;
  // Of the operands with a symbol, in the order of the text; the name is empty for what Find knew.
  std::vector<Reference> symbols_;
  bool has_unknown_ = false;  // whether one of them is not empty
};

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_PTX_OPERAND_H_
