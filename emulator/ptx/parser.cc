// The module level: directives, variables and functions.
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/strings.h"
#include "base/text.h"
#include "emulator/ptx/declaration.h"
#include "emulator/ptx/function_parser.h"
#include "emulator/ptx/module.h"
#include "emulator/ptx/reader.h"

namespace assay::emulator {
namespace {

constexpr int kVersionMajorMax = 9;

class ModuleParser {
 public:
  ModuleParser(std::string_view text, const ParseLimits& limits) : reader_(text, limits) {}

  absl::StatusOr<Module> Parse() {
    ASSAY_RETURN_IF_ERROR(ParseVersion());
    ASSAY_RETURN_IF_ERROR(ParseTarget());
    while (!reader_.at_end()) ASSAY_RETURN_IF_ERROR(Directive());
    for (const Reference& reference : references_) {
      if (IsDeclared(reference.name)) continue;
      return Reader::ErrorAt(reference.line, absl::StrCat("'", Av(reference.name),
                                                          "' is neither a label nor declared"));
    }
    return std::move(module_);
  }

 private:
  absl::Status ParseVersion() {
    if (!reader_.Accept(".version")) return reader_.Expected("'.version', with which PTX begins");
    const std::string_view text = reader_.token().text;
    const size_t dot = text.find('.');
    const bool is_version = reader_.token().kind == Token::Kind::kFloat &&
                            dot != std::string_view::npos && dot > 0 && dot <= 2 &&
                            text.size() > dot + 1 && text.size() <= dot + 3 &&
                            text.find_first_not_of("0123456789.") == std::string_view::npos;
    if (!is_version) return reader_.Expected("a version like 8.0");
    for (const char c : text.substr(0, dot)) {
      module_.version_major = module_.version_major * 10 + (c - '0');
    }
    for (const char c : text.substr(dot + 1)) {
      module_.version_minor = module_.version_minor * 10 + (c - '0');
    }
    if (module_.version_major < 1 || module_.version_major > kVersionMajorMax) {
      return reader_.Error(
          absl::StrCat("PTX version ", Av(text), " is outside of 1.0 to ", kVersionMajorMax, ".x"));
    }
    reader_.Advance();
    return absl::OkStatus();
  }

  absl::Status ParseTarget() {
    if (!reader_.Accept(".target")) return reader_.Expected("'.target'");
    std::string_view target;
    ASSAY_RETURN_IF_ERROR(reader_.Identifier("a target like sm_80", &target));
    if (!target.starts_with("sm_")) {
      return reader_.Error(
          absl::StrCat("'", Av(target), "' is no target; one begins with sm_, like sm_80"));
    }
    module_.target = std::string(target);
    while (reader_.Accept(",")) {
      std::string_view option;  // debug, texmode_independent
      ASSAY_RETURN_IF_ERROR(reader_.Identifier("an option of .target", &option));
    }
    return absl::OkStatus();
  }

  absl::Status Directive() {
    if (reader_.Accept(";")) return absl::OkStatus();
    if (reader_.Accept(".address_size")) return ParseAddressSize();
    if (reader_.Accept(".file")) return ParseFile();
    if (reader_.Accept(".section")) return SkipSection();
    if (reader_.Accept(".pragma")) return SkipPragma(&reader_);
    if (reader_.Is(".loc") || (reader_.Is("@") && reader_.PeekIs("@"))) {
      // @@DWARF: debugging data of old compilers.
      reader_.SkipLine();
      return absl::OkStatus();
    }
    if (!reader_.IsDotWord()) return reader_.Expected("a directive");
    bool is_extern = false;
    while (reader_.Is(".extern") || reader_.Is(".visible") || reader_.Is(".weak") ||
           reader_.Is(".common")) {
      is_extern = is_extern || reader_.Is(".extern");
      reader_.Advance();
    }
    if (reader_.Is(".entry") || reader_.Is(".func")) return ParseFunction();
    return DeclareVariables(is_extern);
  }

  absl::Status ParseAddressSize() {
    int64_t bits = 0;
    ASSAY_RETURN_IF_ERROR(reader_.Integer("the address size", 32, 64, &bits));
    if (bits == 64) return absl::OkStatus();
    return reader_.Error(
        absl::StrCat("addresses of ", bits, " bits are not supported, only of 64"));
  }

  absl::Status ParseFile() {
    ASSAY_RETURN_IF_ERROR(reader_.Charge(2));
    int64_t number = 0;
    ASSAY_RETURN_IF_ERROR(
        reader_.Integer("the number of .file", 0, std::numeric_limits<int32_t>::max(), &number));
    if (reader_.token().kind != Token::Kind::kString) return reader_.Expected("a file name");
    module_.files[static_cast<int>(number)] = PrintableLine(reader_.token().text);
    reader_.Advance();
    while (reader_.Accept(",")) {  // time and size
      ASSAY_RETURN_IF_ERROR(reader_.Integer("a number of .file", 0, INT64_MAX, &number));
    }
    return absl::OkStatus();
  }

  absl::Status SkipSection() {
    if (!reader_.IsDotWord()) return reader_.Expected("the name of a section");
    reader_.Advance();
    if (!reader_.Is("{")) return reader_.Expected("'{'");
    return reader_.SkipBalanced("{", "}");
  }

  absl::Status DeclareVariables(bool is_extern) {
    const std::string_view word = reader_.token().text;
    if (!reader_.IsDotWord()) return reader_.Expected("a variable or function");
    const Space space = ParseSpace(word.substr(1));
    if (space != Space::kGlobal && space != Space::kConst && space != Space::kShared) {
      return reader_.Error(absl::StrCat("'", Av(word), "' is no directive that a module can have"));
    }
    reader_.Advance();
    DeclaredType declared;
    ASSAY_RETURN_IF_ERROR(ParseDeclaredType(&reader_, &declared));
    do {
      ASSAY_RETURN_IF_ERROR(DeclareVariable(space, is_extern, declared));
    } while (reader_.Accept(","));
    return reader_.Expect(";");
  }

  absl::Status DeclareVariable(Space space, bool is_extern, const DeclaredType& declared) {
    Declarator declarator;
    int64_t bytes = 0;
    ASSAY_RETURN_IF_ERROR(ParseDeclarator(&reader_, declared, &declarator, &bytes));
    Variable variable;
    variable.name = std::string(declarator.name);
    variable.space = space;
    variable.is_extern = is_extern;
    ASSAY_RETURN_IF_ERROR(
        ParseVariableTail(&reader_, declared, declarator, bytes, &variable, &references_));
    const auto [known, is_new] = module_.variable_index.try_emplace(
        variable.name, static_cast<int>(module_.variables.size()));
    if (module_.function_index.contains(variable.name)) return AlreadyDeclared(declarator);
    if (is_new) {
      module_.variables.push_back(std::move(variable));
      return absl::OkStatus();
    }
    Variable& other = module_.variables[static_cast<size_t>(known->second)];
    if (!other.is_extern && !is_extern) return AlreadyDeclared(declarator);
    if (!is_extern) other = std::move(variable);
    return absl::OkStatus();
  }

  static absl::Status AlreadyDeclared(const Declarator& declarator) {
    return Reader::ErrorAt(declarator.line,
                           absl::StrCat("'", Av(declarator.name), "' is already declared"));
  }

  absl::Status ParseFunction() {
    Function function;
    ASSAY_RETURN_IF_ERROR(ParseFunctionHeader(&reader_, &function));
    if (module_.variable_index.contains(function.name)) {
      return Reader::ErrorAt(function.location.ptx_line,
                             absl::StrCat("'", function.name, "' is already declared"));
    }
    const auto [known, is_new] = module_.function_index.try_emplace(
        function.name, static_cast<int>(module_.functions.size()));
    const size_t slot = static_cast<size_t>(known->second);
    if (is_new) module_.functions.emplace_back();
    if (function.is_declaration) {
      ASSAY_RETURN_IF_ERROR(reader_.Expect(";"));
      if (is_new) module_.functions[slot] = std::move(function);
      return absl::OkStatus();
    }
    if (!is_new && !module_.functions[slot].is_declaration) {
      return Reader::ErrorAt(function.location.ptx_line,
                             absl::StrCat("function '", function.name, "' has a second body"));
    }
    ASSAY_RETURN_IF_ERROR(ParseBody(&function));
    module_.functions[slot] = std::move(function);
    return absl::OkStatus();
  }

  absl::Status ParseBody(Function* function) {
    std::vector<Reference> unresolved;
    FunctionBodyParser body(&reader_, &module_, function, &unresolved);
    ASSAY_RETURN_IF_ERROR(body.Parse());
    for (const Reference& reference : unresolved) {
      if (!IsDeclared(reference.name)) references_.push_back(reference);
    }
    return absl::OkStatus();
  }

  bool IsDeclared(std::string_view name) const {
    return module_.variable_index.contains(name) || module_.function_index.contains(name);
  }

  Reader reader_;
  Module module_;
  std::vector<Reference> references_;  // to be declared somewhere in the module
};

}  // namespace

absl::StatusOr<Module> ParseModule(std::string_view text, const ParseLimits& limits) {
  text = text.substr(0, text.find('\0'));
  if (static_cast<int64_t>(text.size()) > limits.text_bytes_max) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the PTX has ", text.size(), " bytes; at most ", limits.text_bytes_max, " are read"));
  }
  return ModuleParser(text, limits).Parse();
}

}  // namespace assay::emulator
