#include "emulator/ptx/module_check.h"

#include <bit>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace assay::emulator {
namespace {

bool IsRegister(const Function& function, int reg) {
  return reg >= 0 && static_cast<size_t>(reg) < function.registers.size();
}

std::string CheckOperand(const Function& function, const Operand& operand) {
  const bool is_register = operand.kind == Operand::Kind::kRegister;
  const bool is_address = operand.kind == Operand::Kind::kAddress;
  if (is_register && !IsRegister(function, operand.reg)) return "a register that is not there";
  if (is_address && operand.reg != -1 && !IsRegister(function, operand.reg))
    return "a base that is not there";
  if (is_address && operand.reg != -1 && !operand.symbol.empty()) return "two bases";
  if (operand.pair != -1 && !IsRegister(function, operand.pair)) return "a pair that is not there";
  const bool needs_symbol =
      operand.kind == Operand::Kind::kSymbol || operand.kind == Operand::Kind::kSpecial;
  if (needs_symbol && operand.symbol.empty()) return "a symbol without a name";
  for (const Operand& element : operand.elements) {
    const std::string wrong = CheckOperand(function, element);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

std::string CheckVariable(const Variable& variable) {
  if (variable.name.empty()) return "a variable without a name";
  if (variable.bytes < 0 || variable.align < 1) return "a variable with a wrong size";
  if (static_cast<int64_t>(variable.init.size()) > variable.bytes)
    return "an image that is too large";
  for (const Relocation& relocation : variable.relocations) {
    if (relocation.offset < 0 || relocation.offset + 8 > variable.bytes) return "a pointer outside";
  }
  return "";
}

std::string CheckFunction(const Function& function) {
  for (const Variable& variable : function.variables) {
    const std::string wrong = CheckVariable(variable);
    if (!wrong.empty()) return wrong;
  }
  for (const Parameter& parameter : function.parameters) {
    if (parameter.bytes < 0 || parameter.align < 1) return "a parameter with a wrong size";
    const bool has_register =
        parameter.is_register && !function.is_declaration && parameter.name != "_";
    if (has_register && !IsRegister(function, parameter.reg)) return "a parameter without register";
  }
  for (const Instruction& instruction : function.instructions) {
    if (instruction.guard != -1 && !IsRegister(function, instruction.guard)) return "a wrong guard";
    if (instruction.mnemonic.empty()) return "an instruction without a name";
    for (const Operand& operand : instruction.operands) {
      const std::string wrong = CheckOperand(function, operand);
      if (!wrong.empty()) return wrong;
    }
  }
  for (const auto& [name, index] : function.labels) {
    if (index < 0 || static_cast<size_t>(index) > function.instructions.size())
      return "a label outside";
  }
  return "";
}

std::string BaseText(const Function& function, const Operand& operand) {
  std::string text;
  if (operand.reg >= 0) {
    text = function.registers[static_cast<size_t>(operand.reg)].name;
  } else {
    text = operand.symbol;
  }
  if (text.empty()) return absl::StrCat(operand.offset);
  if (operand.offset != 0) absl::StrAppend(&text, absl::StrFormat("%+d", operand.offset));
  return text;
}

std::string ListText(const Function& function, const std::vector<Operand>& operands) {
  std::string text;
  for (const Operand& operand : operands) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", OperandText(function, operand));
  }
  return text;
}

std::string PlainText(const Function& function, const Operand& operand) {
  switch (operand.kind) {
    case Operand::Kind::kRegister:
    case Operand::Kind::kSymbol:
    case Operand::Kind::kSpecial:
      return BaseText(function, operand);
    case Operand::Kind::kInteger:
      return absl::StrCat(static_cast<int64_t>(operand.bits));
    case Operand::Kind::kFloat:
      if (operand.single) return absl::StrFormat("0x%xf", operand.bits);
      return absl::StrFormat("%gd", std::bit_cast<double>(operand.bits));
    case Operand::Kind::kAddress: {
      const std::string rest = ListText(function, operand.elements);
      return absl::StrCat("[", BaseText(function, operand), rest.empty() ? "" : ", ", rest, "]");
    }
    case Operand::Kind::kVector:
      return absl::StrCat("{", ListText(function, operand.elements), "}");
    case Operand::Kind::kSink:
      return "_";
  }
  return "?";
}

}  // namespace

std::string CheckModule(const Module& module) {
  for (const Variable& variable : module.variables) {
    const std::string wrong = CheckVariable(variable);
    if (!wrong.empty()) return wrong;
    if (module.FindVariable(variable.name) != &variable) return "a variable that is not found";
  }
  for (const Function& function : module.functions) {
    const std::string wrong = CheckFunction(function);
    if (!wrong.empty()) return wrong;
    if (module.FindFunction(function.name) != &function) return "a function that is not found";
  }
  return "";
}

std::string OperandText(const Function& function, const Operand& operand) {
  std::string text = absl::StrCat(operand.negated ? "!" : "", PlainText(function, operand));
  if (operand.pair >= 0) {
    absl::StrAppend(&text, "|", function.registers[static_cast<size_t>(operand.pair)].name);
  }
  return text;
}

std::string InstructionText(const Function& function, const Instruction& instruction) {
  std::string text;
  if (instruction.guard >= 0) {
    absl::StrAppend(&text, instruction.guard_negated ? "@!" : "@",
                    function.registers[static_cast<size_t>(instruction.guard)].name, " ");
  }
  const std::string operands = ListText(function, instruction.operands);
  absl::StrAppend(&text, instruction.opcode, operands.empty() ? "" : " ", operands);
  return text;
}

}  // namespace assay::emulator
