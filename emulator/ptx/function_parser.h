// Functions: the header, and the body with its statements.
//
// Borrows everything; not thread-safe.
#ifndef ASSAY_EMULATOR_PTX_FUNCTION_PARSER_H_
#define ASSAY_EMULATOR_PTX_FUNCTION_PARSER_H_

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "emulator/ptx/declaration.h"
#include "emulator/ptx/module.h"
#include "emulator/ptx/operand.h"
#include "emulator/ptx/reader.h"
#include "emulator/ptx/scope.h"

namespace assay::emulator {

// From .entry or .func to the "{" or ";" that follows, which is left.
absl::Status ParseFunctionHeader(Reader* reader, Function* function);

// Behind .pragma: "nounroll"; and so on, which say nothing about what the code does.
absl::Status SkipPragma(Reader* reader);

class FunctionBodyParser {
 public:
  // `function` has its header. Names that nothing in it declares go to `references`.
  FunctionBodyParser(Reader* reader, Module* module, Function* function,
                     std::vector<Reference>* references);

  // From "{" to behind the matching "}".
  absl::Status Parse();

 private:
  absl::Status DeclareParameters(std::vector<Parameter>* parameters);
  absl::Status Statement();
  absl::Status Directive();
  absl::Status DeclareRegisters();
  absl::Status DeclareRegister(const DeclaredType& declared);
  absl::Status DeclareVariables(Space space, bool is_extern);
  absl::Status DeclareVariable(Space space, bool is_extern, const DeclaredType& declared);
  absl::Status ParseLocation();
  // Behind "name:".
  absl::Status Label(std::string_view name, int line);
  absl::Status BranchTargets(std::vector<std::string>* list);
  absl::Status SkipToSemicolon();
  absl::Status ParseInstruction();
  absl::Status ParseOpcode(Instruction* instruction);

  Reader* reader_;
  std::deque<std::string> parameter_names_;  // as written, for the scopes
  Module* module_;
  Function* function_;
  std::vector<Reference>* references_;
  Scopes scopes_;
  OperandParser operands_;
  SourceLocation location_;  // of the last .loc
};

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_PTX_FUNCTION_PARSER_H_
