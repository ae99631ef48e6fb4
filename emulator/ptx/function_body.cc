#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/strings.h"
#include "emulator/ptx/declaration.h"
#include "emulator/ptx/function_parser.h"

namespace assay::emulator {
namespace {

constexpr int64_t kLineMax = std::numeric_limits<int32_t>::max();

// Operands are entered in the scopes by address: they must stay where they are when their
// instruction moves.
static_assert(std::is_nothrow_move_constructible_v<Instruction>);

}  // namespace

FunctionBodyParser::FunctionBodyParser(Reader* reader, Module* module, Function* function,
                                       std::vector<Reference>* references)
    : reader_(reader),
      module_(module),
      function_(function),
      references_(references),
      scopes_(reader, module, function),
      operands_(reader, &scopes_) {}

absl::Status FunctionBodyParser::Parse() {
  ASSAY_RETURN_IF_ERROR(DeclareParameters(&function_->returns));
  ASSAY_RETURN_IF_ERROR(DeclareParameters(&function_->parameters));
  ASSAY_RETURN_IF_ERROR(reader_->Expect("{"));
  while (!reader_->Is("}") || scopes_.depth() > 1) {
    if (reader_->at_end()) {
      return reader_->Error(
          absl::StrCat("the text ends inside of function '", function_->name, "'"));
    }
    if (reader_->Accept("{")) {
      ASSAY_RETURN_IF_ERROR(scopes_.Open());
    } else if (reader_->Accept("}")) {
      scopes_.Close();
    } else {
      ASSAY_RETURN_IF_ERROR(Statement());
    }
  }
  reader_->Advance();
  scopes_.Finish(references_);
  return absl::OkStatus();
}

absl::Status FunctionBodyParser::DeclareParameters(std::vector<Parameter>* parameters) {
  for (Parameter& parameter : *parameters) {
    if (parameter.name == "_") continue;
    const std::string& name = parameter_names_.emplace_back(parameter.name);
    if (parameter.is_register) {
      ASSAY_RETURN_IF_ERROR(scopes_.DeclareRegister(name, parameter.type, 1, &parameter.reg));
    } else {
      ASSAY_RETURN_IF_ERROR(scopes_.DeclareVariable(name, "", &parameter.name));
    }
  }
  return absl::OkStatus();
}

absl::Status FunctionBodyParser::Statement() {
  if (reader_->Accept(";")) return absl::OkStatus();
  if (reader_->IsDotWord()) return Directive();
  if (reader_->IsIdentifier() && reader_->PeekIs(":")) {
    const std::string_view name = reader_->token().text;
    const int line = reader_->line();
    reader_->Advance();
    reader_->Advance();
    return Label(name, line);
  }
  return ParseInstruction();
}

absl::Status FunctionBodyParser::Directive() {
  if (reader_->Accept(".loc")) return ParseLocation();
  if (reader_->Accept(".reg")) return DeclareRegisters();
  if (reader_->Accept(".pragma")) return SkipPragma(reader_);
  const bool is_extern = reader_->Accept(".extern");
  if (!reader_->IsDotWord()) return reader_->Expected("a state space");
  const Space space = ParseSpace(reader_->token().text.substr(1));
  if (space == Space::kGeneric || space == Space::kRegister) {
    return reader_->Error(
        absl::StrCat("'", Av(reader_->token().text), "' is no directive of a function body"));
  }
  reader_->Advance();
  return DeclareVariables(space, is_extern);
}

absl::Status FunctionBodyParser::DeclareRegisters() {
  DeclaredType declared;
  ASSAY_RETURN_IF_ERROR(ParseDeclaredType(reader_, &declared));
  do {
    ASSAY_RETURN_IF_ERROR(DeclareRegister(declared));
  } while (reader_->Accept(","));
  return reader_->Expect(";");
}

absl::Status FunctionBodyParser::DeclareRegister(const DeclaredType& declared) {
  std::string_view name;
  ASSAY_RETURN_IF_ERROR(reader_->Identifier("the name of a register", &name));
  if (!reader_->Accept("<")) {
    int reg = 0;
    return scopes_.DeclareRegister(name, declared.type, declared.width, &reg);
  }
  if (declared.width > 1) return reader_->Error("ranges of vector registers are not supported");
  int64_t count = 0;
  ASSAY_RETURN_IF_ERROR(reader_->Integer("a number of registers", 0, INT64_MAX, &count));
  ASSAY_RETURN_IF_ERROR(reader_->Expect(">"));
  return scopes_.DeclareRange(name, declared.type, count);
}

absl::Status FunctionBodyParser::DeclareVariables(Space space, bool is_extern) {
  DeclaredType declared;
  ASSAY_RETURN_IF_ERROR(ParseDeclaredType(reader_, &declared));
  do {
    ASSAY_RETURN_IF_ERROR(DeclareVariable(space, is_extern, declared));
  } while (reader_->Accept(","));
  return reader_->Expect(";");
}

absl::Status FunctionBodyParser::DeclareVariable(Space space, bool is_extern,
                                                 const DeclaredType& declared) {
  Declarator declarator;
  int64_t bytes = 0;
  ASSAY_RETURN_IF_ERROR(ParseDeclarator(reader_, declared, &declarator, &bytes));
  const bool is_static = space == Space::kGlobal || space == Space::kConst;
  Variable variable;
  variable.space = space;
  variable.is_extern = is_extern;
  ASSAY_RETURN_IF_ERROR(scopes_.DeclareVariable(
      declarator.name, is_static ? absl::StrCat("@", function_->name) : "", &variable.name));
  ASSAY_RETURN_IF_ERROR(reader_->ChargeText(variable.name));
  ASSAY_RETURN_IF_ERROR(
      ParseVariableTail(reader_, declared, declarator, bytes, &variable, references_));
  if (!is_static) {
    function_->variables.push_back(std::move(variable));
    return absl::OkStatus();
  }
  module_->variable_index.emplace(variable.name, static_cast<int>(module_->variables.size()));
  module_->variables.push_back(std::move(variable));
  return absl::OkStatus();
}

absl::Status FunctionBodyParser::ParseLocation() {
  int64_t file = 0;
  int64_t line = 0;
  int64_t ignored = 0;
  ASSAY_RETURN_IF_ERROR(reader_->Integer("the file of .loc", 0, kLineMax, &file));
  ASSAY_RETURN_IF_ERROR(reader_->Integer("the line of .loc", 0, kLineMax, &line));
  ASSAY_RETURN_IF_ERROR(reader_->Integer("the column of .loc", 0, kLineMax, &ignored));
  while (reader_->Accept(",")) {
    std::string_view label;
    if (reader_->Accept("function_name")) {
      ASSAY_RETURN_IF_ERROR(reader_->Identifier("a label", &label));
      if (!reader_->Accept("+")) continue;
      ASSAY_RETURN_IF_ERROR(reader_->Integer("an offset", 0, INT64_MAX, &ignored));
    } else if (reader_->Accept("inlined_at")) {
      for (int i = 0; i < 3; ++i) {
        ASSAY_RETURN_IF_ERROR(reader_->Integer("a place of .loc", 0, kLineMax, &ignored));
      }
    } else {
      return reader_->Expected("'function_name' or 'inlined_at'");
    }
  }
  if (line == 0) return absl::OkStatus();
  location_.file = static_cast<int>(file);
  location_.line = static_cast<int>(line);
  if (function_->location.line == 0) {
    function_->location.file = location_.file;
    function_->location.line = location_.line;
  }
  return absl::OkStatus();
}

absl::Status FunctionBodyParser::Label(std::string_view name, int line) {
  if (name.front() == '%' || name == "_") {
    return Reader::ErrorAt(line, absl::StrCat("'", Av(name), "' is no name for a label"));
  }
  std::string unique;
  ASSAY_RETURN_IF_ERROR(scopes_.DeclareLabel(name, &unique));
  if (reader_->Accept(".branchtargets")) {
    return BranchTargets(&function_->branch_targets[unique]);
  }
  // What may be called is known from the operands.
  if (reader_->Accept(".callprototype") || reader_->Accept(".calltargets")) {
    return SkipToSemicolon();
  }
  function_->labels.emplace(unique, static_cast<int>(function_->instructions.size()));
  return absl::OkStatus();
}

absl::Status FunctionBodyParser::BranchTargets(std::vector<std::string>* list) {
  std::vector<Reference> references;
  do {
    ASSAY_RETURN_IF_ERROR(reader_->Charge(2));
    Reference reference;
    reference.line = reader_->line();
    ASSAY_RETURN_IF_ERROR(reader_->Identifier("a label", &reference.name));
    references.push_back(reference);
    list->emplace_back(reference.name);
  } while (reader_->Accept(","));
  for (size_t i = 0; i < references.size(); ++i) scopes_.Refer(references[i], &(*list)[i]);
  return reader_->Expect(";");
}

absl::Status FunctionBodyParser::SkipToSemicolon() {
  while (!reader_->Accept(";")) {
    if (reader_->at_end() || reader_->token().kind == Token::Kind::kError) {
      return reader_->Expected("';'");
    }
    reader_->Advance();
  }
  return absl::OkStatus();
}

absl::Status FunctionBodyParser::ParseInstruction() {
  ASSAY_RETURN_IF_ERROR(reader_->ChargeInstruction());
  Instruction instruction;
  instruction.location = location_;
  instruction.location.ptx_line = reader_->line();
  if (reader_->Accept("@")) {
    instruction.guard_negated = reader_->Accept("!");
    ASSAY_RETURN_IF_ERROR(operands_.ParsePredicate(&instruction.guard));
    const Register& guard = function_->registers[static_cast<size_t>(instruction.guard)];
    if (guard.type != Type::kPred) {
      return reader_->Error(absl::StrCat("the guard '", guard.name, "' is no predicate"));
    }
    instruction.location.ptx_line = reader_->line();
  }
  ASSAY_RETURN_IF_ERROR(ParseOpcode(&instruction));
  const bool is_call = instruction.mnemonic == "call";
  ASSAY_RETURN_IF_ERROR(operands_.ParseList(is_call, &instruction.operands));
  ASSAY_RETURN_IF_ERROR(reader_->Expect(";"));
  function_->instructions.push_back(std::move(instruction));
  operands_.Refer(&function_->instructions.back().operands);
  return absl::OkStatus();
}

absl::Status FunctionBodyParser::ParseOpcode(Instruction* instruction) {
  if (!reader_->IsIdentifier() || reader_->token().text.front() == '%') {
    return reader_->Expected("an instruction");
  }
  instruction->mnemonic = std::string(reader_->token().text);
  instruction->opcode = instruction->mnemonic;
  reader_->Advance();
  while (reader_->IsDotWord()) {
    ASSAY_RETURN_IF_ERROR(reader_->Charge(1));
    instruction->opcode.append(reader_->token().text);
    instruction->modifiers.emplace_back(reader_->token().text.substr(1));
    reader_->Advance();
  }
  return absl::OkStatus();
}

}  // namespace assay::emulator
