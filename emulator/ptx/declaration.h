// Declarations of variables and parameters, without the state space that begins them.
#ifndef ASSAY_EMULATOR_PTX_DECLARATION_H_
#define ASSAY_EMULATOR_PTX_DECLARATION_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "emulator/ptx/module.h"
#include "emulator/ptx/reader.h"
#include "emulator/ptx/scope.h"

namespace assay::emulator {

// What stands between the state space and the name: .align 8 .v4 .f32.
struct DeclaredType {
  Type type = Type::kNone;
  int width = 1;      // of a vector
  int64_t align = 0;  // bytes; 0: not given
  int64_t bytes() const { return int64_t{width} * TypeBytes(type); }
};

// A name with its array dimensions.
struct Declarator {
  std::string_view name;
  int line = 0;
  std::vector<int64_t> dimensions;  // outermost first
  bool is_unsized = false;          // x[]: the outermost one is left out
};

absl::Status ParseDeclaredType(Reader* reader, DeclaredType* declared);
// RESOURCE_EXHAUSTED for more than ParseLimits::variable_bytes_max.
absl::Status ParseDeclarator(Reader* reader, const DeclaredType& declared, Declarator* declarator,
                             int64_t* bytes);

// The rest of a declaration behind the name and dimensions: "= {1, 2}" or nothing. Fills everything
// of `variable` but its name and space; is_extern must be set. Symbols in the image go to
// `references`.
absl::Status ParseVariableTail(Reader* reader, const DeclaredType& declared,
                               const Declarator& declarator, int64_t bytes, Variable* variable,
                               std::vector<Reference>* references);

// ".param .align 8 .b8 name[16]", ".param .u64 .ptr .global .align 4 name" or ".reg .u32 name".
absl::Status ParseParameter(Reader* reader, Parameter* parameter);
// "(a, b)" with the parentheses.
absl::Status ParseParameterList(Reader* reader, std::vector<Parameter>* parameters);

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_PTX_DECLARATION_H_
