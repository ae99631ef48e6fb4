#include "emulator/ptx/declaration.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/strings.h"
#include "emulator/ptx/constant.h"

namespace assay::emulator {
namespace {

constexpr int64_t kAlignMax = 1 << 20;
constexpr size_t kDimensionsMax = 16;

absl::Status ParseAlign(Reader* reader, int64_t* align) {
  ASSAY_RETURN_IF_ERROR(reader->Integer("the alignment", 1, kAlignMax, align));
  if ((*align & (*align - 1)) == 0) return absl::OkStatus();
  return reader->Error(absl::StrCat("the alignment ", *align, " is no power of two"));
}

// What may stand behind the type of a parameter of kernels: .ptr .global .align 4. It only helps
// compilers.
absl::Status SkipPointerAttribute(Reader* reader) {
  if (!reader->Accept(".ptr")) return absl::OkStatus();
  if (reader->IsDotWord() && ParseSpace(reader->token().text.substr(1)) != Space::kGeneric) {
    reader->Advance();
  } else {
    reader->Accept(".generic");
  }
  int64_t align = 0;
  if (reader->Accept(".align")) return ParseAlign(reader, &align);
  return absl::OkStatus();
}

}  // namespace

absl::Status ParseDeclaredType(Reader* reader, DeclaredType* declared) {
  while (reader->IsDotWord()) {
    if (reader->Accept(".align")) {
      ASSAY_RETURN_IF_ERROR(ParseAlign(reader, &declared->align));
    } else if (reader->Accept(".attribute")) {
      if (!reader->Is("(")) return reader->Expected("'('");
      ASSAY_RETURN_IF_ERROR(reader->SkipBalanced("(", ")"));
    } else if (reader->Accept(".v2")) {
      declared->width = 2;
    } else if (reader->Accept(".v4")) {
      declared->width = 4;
    } else {
      declared->type = ParseType(reader->token().text.substr(1));
      if (declared->type == Type::kNone) {
        return reader->Error(
            absl::StrCat("'", Av(reader->token().text), "' is no type that can be declared here"));
      }
      reader->Advance();
      return absl::OkStatus();
    }
  }
  return reader->Expected("a type");
}

absl::Status ParseDeclarator(Reader* reader, const DeclaredType& declared, Declarator* declarator,
                             int64_t* bytes) {
  declarator->line = reader->line();
  ASSAY_RETURN_IF_ERROR(reader->Identifier("a name", &declarator->name));
  *bytes = declared.bytes();
  int64_t row_bytes = *bytes;  // as if no dimension were 0: rows of an empty array have a size too
  while (reader->Accept("[")) {
    if (reader->Accept("]")) {
      if (declarator->is_unsized || !declarator->dimensions.empty()) {
        return reader->Error("only the first dimension of an array may be left out");
      }
      declarator->is_unsized = true;
      continue;
    }
    int64_t size = 0;
    ASSAY_RETURN_IF_ERROR(
        ParseIntegerConstant(reader, "the size of an array", 0, INT64_MAX, &size));
    ASSAY_RETURN_IF_ERROR(reader->Expect("]"));
    if (size > 0 && row_bytes > reader->limits().variable_bytes_max / size) {
      return reader->Exhausted(absl::StrCat("'", Av(declarator->name), "' takes more than ",
                                            reader->limits().variable_bytes_max, " bytes"));
    }
    *bytes *= size;
    row_bytes *= std::max<int64_t>(1, size);
    declarator->dimensions.push_back(size);
    if (declarator->dimensions.size() > kDimensionsMax) {
      return reader->Exhausted(
          absl::StrCat("an array has more than ", kDimensionsMax, " dimensions"));
    }
  }
  return absl::OkStatus();
}

absl::Status ParseParameter(Reader* reader, Parameter* parameter) {
  ASSAY_RETURN_IF_ERROR(reader->Charge(1));
  parameter->is_register = reader->Is(".reg");
  if (!reader->Accept(".reg") && !reader->Accept(".param")) {
    return reader->Expected("'.param' or '.reg'");
  }
  DeclaredType declared;
  ASSAY_RETURN_IF_ERROR(ParseDeclaredType(reader, &declared));
  if (!parameter->is_register && declared.type == Type::kPred) {
    return reader->Error("a parameter in memory cannot be a predicate");
  }
  ASSAY_RETURN_IF_ERROR(SkipPointerAttribute(reader));
  Declarator declarator;
  ASSAY_RETURN_IF_ERROR(ParseDeclarator(reader, declared, &declarator, &parameter->bytes));
  const bool is_array = declarator.is_unsized || !declarator.dimensions.empty();
  if (parameter->is_register && (is_array || declared.width > 1)) {
    return reader->Error("a register parameter can be no array and no vector");
  }
  parameter->name = std::string(declarator.name);
  parameter->type = declared.type;
  parameter->align = declared.align > 0 ? declared.align : declared.bytes();
  if (declarator.is_unsized) parameter->bytes = 0;
  return absl::OkStatus();
}

absl::Status ParseParameterList(Reader* reader, std::vector<Parameter>* parameters) {
  ASSAY_RETURN_IF_ERROR(reader->Expect("("));
  if (reader->Accept(")")) return absl::OkStatus();
  do {
    Parameter parameter;
    ASSAY_RETURN_IF_ERROR(ParseParameter(reader, &parameter));
    parameters->push_back(std::move(parameter));
  } while (reader->Accept(","));
  return reader->Expect(")");
}

}  // namespace assay::emulator
