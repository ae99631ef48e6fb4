#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/strings.h"
#include "emulator/ptx/declaration.h"
#include "emulator/ptx/function_parser.h"

namespace assay::emulator {
namespace {

constexpr int64_t kCountMax = std::numeric_limits<int32_t>::max();

// "128, 1, 1"; those left out are 1.
absl::Status ParseDimensions(Reader* reader, int64_t (&dimensions)[3]) {
  for (int64_t& dimension : dimensions) dimension = 1;
  for (int i = 0; i < 3; ++i) {
    ASSAY_RETURN_IF_ERROR(reader->Integer("a number of threads", 1, kCountMax, &dimensions[i]));
    if (!reader->Accept(",")) break;
    if (i == 2) return reader->Error("a list of dimensions has at most three");
  }
  return absl::OkStatus();
}

// Whether the present directive tells compilers and schedulers something that execution does not
// need, and takes only numbers.
bool IsTuningDirective(const Reader& reader) {
  static constexpr std::string_view kDirectives[] = {
      ".minnctapersm",         ".maxnctapersm",      ".maxnreg",        ".noreturn",
      ".explicitcluster",      ".reqnctapercluster", ".maxclusterrank", ".abi_preserve",
      ".abi_preserve_control", ".blocksareclusters",
  };
  for (const std::string_view directive : kDirectives) {
    if (reader.Is(directive)) return true;
  }
  return false;
}

absl::Status SkipNumbers(Reader* reader) {
  if (reader->token().kind != Token::Kind::kInteger) return absl::OkStatus();
  do {
    int64_t value = 0;
    ASSAY_RETURN_IF_ERROR(reader->Integer("a number", 0, kCountMax, &value));
  } while (reader->Accept(","));
  return absl::OkStatus();
}

absl::Status ParseAttributes(Reader* reader, Function* function) {
  while (reader->IsDotWord()) {
    if (reader->Accept(".maxntid")) {
      ASSAY_RETURN_IF_ERROR(ParseDimensions(reader, function->max_threads));
    } else if (reader->Accept(".reqntid")) {
      ASSAY_RETURN_IF_ERROR(ParseDimensions(reader, function->required_threads));
    } else if (reader->Accept(".pragma")) {
      ASSAY_RETURN_IF_ERROR(SkipPragma(reader));
    } else if (IsTuningDirective(*reader)) {
      reader->Advance();
      ASSAY_RETURN_IF_ERROR(SkipNumbers(reader));
    } else {
      return reader->Error(
          absl::StrCat("'", Av(reader->token().text), "' is no directive of a function"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SkipPragma(Reader* reader) {
  do {
    if (reader->token().kind != Token::Kind::kString) return reader->Expected("a string");
    reader->Advance();
  } while (reader->Accept(","));
  return reader->Expect(";");
}

absl::Status ParseFunctionHeader(Reader* reader, Function* function) {
  // A function takes several times what an operand does.
  ASSAY_RETURN_IF_ERROR(reader->Charge(8));
  function->location.ptx_line = reader->line();
  function->is_entry = reader->Is(".entry");
  reader->Advance();
  if (reader->Accept(".attribute")) {
    if (!reader->Is("(")) return reader->Expected("'('");
    ASSAY_RETURN_IF_ERROR(reader->SkipBalanced("(", ")"));
  }
  if (reader->Is("(")) {
    if (function->is_entry) return reader->Error("an entry returns nothing");
    ASSAY_RETURN_IF_ERROR(ParseParameterList(reader, &function->returns));
  }
  std::string_view name;
  ASSAY_RETURN_IF_ERROR(reader->Identifier("the name of a function", &name));
  function->name = std::string(name);
  if (reader->Is("(")) {
    ASSAY_RETURN_IF_ERROR(ParseParameterList(reader, &function->parameters));
  }
  ASSAY_RETURN_IF_ERROR(ParseAttributes(reader, function));
  function->is_declaration = reader->Is(";");
  if (reader->Is(";") || reader->Is("{")) return absl::OkStatus();
  return reader->Expected("'{' or ';'");
}

}  // namespace assay::emulator
