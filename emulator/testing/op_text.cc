#include "emulator/testing/op_text.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/strings.h"

namespace assay::emulator {
namespace {

std::string_view Trim(std::string_view text) { return Sv(absl::StripAsciiWhitespace(Av(text))); }

[[noreturn]] void Fail(std::string_view text) {
  std::fprintf(stderr, "no operand: %s\n", std::string(text).c_str());
  std::abort();
}

// Splits at commas outside of braces.
std::vector<std::string_view> SplitOperands(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '{') ++depth;
    if (text[i] == '}') --depth;
    if (text[i] != ',' || depth != 0) continue;
    parts.push_back(Trim(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  const std::string_view last = Trim(text.substr(begin));
  if (!last.empty()) parts.push_back(last);
  return parts;
}

// A register has a width letter and a role letter; anything longer is a special register.
bool IsRegister(std::string_view text) { return text.size() == 3 && text[0] == '%'; }

Operand Number(std::string_view text) {
  Operand operand;
  const std::string copy(text);
  if (text.size() > 2 && text[0] == '0' && (text[1] == 'f' || text[1] == 'd')) {
    operand.kind = Operand::Kind::kFloat;
    operand.single = text[1] == 'f';
    operand.bits = std::strtoull(copy.c_str() + 2, nullptr, 16);
    return operand;
  }
  char* end = nullptr;
  operand.kind = Operand::Kind::kInteger;
  operand.bits = text[0] == '-' ? static_cast<uint64_t>(std::strtoll(copy.c_str(), &end, 0))
                                : std::strtoull(copy.c_str(), &end, 0);
  if (*end != '\0') Fail(text);
  return operand;
}

Operand ParseOperand(std::string_view text, const RegisterIndex& index) {
  Operand operand;
  if (text.empty()) Fail("an empty one");
  if (text == "_") {
    operand.kind = Operand::Kind::kSink;
    return operand;
  }
  if (text[0] == '{') {
    operand.kind = Operand::Kind::kVector;
    for (const std::string_view part : SplitOperands(text.substr(1, text.size() - 2))) {
      operand.elements.push_back(ParseOperand(part, index));
    }
    return operand;
  }
  if (text[0] == '!') {
    operand = ParseOperand(text.substr(1), index);
    operand.negated = true;
    return operand;
  }
  const size_t bar = text.find('|');
  if (bar != std::string_view::npos) {
    operand = ParseOperand(text.substr(0, bar), index);
    operand.pair = index(text.substr(bar + 1));
    return operand;
  }
  if (text[0] != '%') return Number(text);
  if (!IsRegister(text)) {
    operand.kind = Operand::Kind::kSpecial;
    operand.symbol = std::string(text);
    return operand;
  }
  operand.kind = Operand::Kind::kRegister;
  operand.reg = index(text);
  return operand;
}

}  // namespace

Instruction SplitInstruction(std::string_view text, const RegisterIndex& index) {
  Instruction instruction;
  const size_t space = text.find(' ');
  instruction.opcode = std::string(text.substr(0, space));
  std::vector<std::string> parts = absl::StrSplit(instruction.opcode, '.');
  instruction.mnemonic = parts[0];
  instruction.modifiers.assign(parts.begin() + 1, parts.end());
  if (space == std::string_view::npos) return instruction;
  for (const std::string_view part : SplitOperands(text.substr(space))) {
    instruction.operands.push_back(ParseOperand(part, index));
  }
  return instruction;
}

}  // namespace assay::emulator
