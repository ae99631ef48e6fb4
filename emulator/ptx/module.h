// PTX as parsed: names are resolved to registers, nothing is interpreted yet.
//
// Plain values. A Module is immutable after parsing and may be shared between threads.
#ifndef ASSAY_EMULATOR_PTX_MODULE_H_
#define ASSAY_EMULATOR_PTX_MODULE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace assay::emulator {

// Fundamental types of PTX (chapter 5.2 of the PTX ISA) and the packed ones that instructions name.
enum class Type : uint8_t {
  kNone,
  kPred,
  kB8,
  kB16,
  kB32,
  kB64,
  kB128,
  kU8,
  kU16,
  kU32,
  kU64,
  kS8,
  kS16,
  kS32,
  kS64,
  kF16,
  kF16x2,
  kBF16,
  kBF16x2,
  kTF32,
  kF32,
  kF64,
  kU16x2,
  kS16x2,
};

// "f32" to kF32; kNone for a modifier that is no type. Without the dot.
Type ParseType(std::string_view name);
std::string_view TypeName(Type type);
// Bytes of one value; a predicate counts as 1. 0 for kNone.
int TypeBytes(Type type);
inline bool IsSigned(Type t) {
  return t == Type::kS8 || t == Type::kS16 || t == Type::kS32 || t == Type::kS64 ||
         t == Type::kS16x2;
}

enum class Space : uint8_t { kGeneric, kRegister, kConst, kGlobal, kLocal, kParam, kShared };
// "global" to kGlobal; kGeneric for a name that is no space.
Space ParseSpace(std::string_view name);
std::string_view SpaceName(Space space);

// Where an instruction stands: in the PTX text, and in the source by the last `.loc` before it. One
// of line 0, which compilers give to code of no single line, leaves the one before.
struct SourceLocation {
  int ptx_line = 0;
  int file = 0;  // key of Module::files; 0: unknown
  int line = 0;  // of that file
};

struct Operand {
  enum class Kind : uint8_t {
    kRegister,  // reg; with `negated` for !p; `pair` is the second destination of d|p
    kInteger,   // bits, two's complement
    kFloat,     // bits of a double (0d..., 1.5), or in the low half those of a float when `single`
                // (0f...)
    kSymbol,    // variable, function or label, plus offset
    // [register or symbol or integer + offset]; a base of kInteger leaves both unset. What follows
    // the base, as in [tensor, {x, y}], is in `elements`.
    kAddress,
    kVector,   // elements: {a, b} of a vector, (a, b) of a call
    kSink,     // _
    kSpecial,  // symbol holds the name with its percent sign: %tid.x
  };
  Kind kind = Kind::kInteger;
  bool negated = false;
  bool single = false;
  int reg = -1;   // index into Function::registers
  int pair = -1;  // likewise; -1: none
  uint64_t bits = 0;
  std::string symbol;
  int64_t offset = 0;
  std::vector<Operand> elements;
};

struct Instruction {
  SourceLocation location;
  int guard = -1;  // register of the guard predicate; -1: none
  bool guard_negated = false;
  std::string opcode;                  // as written: "ld.global.nc.v4.f32"
  std::string mnemonic;                // "ld"
  std::vector<std::string> modifiers;  // "global", "nc", "v4", "f32"; "::" stays inside one
  std::vector<Operand> operands;       // destination first

  bool Has(std::string_view modifier) const;
};

// A pointer inside an initial image.
struct Relocation {
  int64_t offset = 0;  // in the variable, bytes
  std::string symbol;
  int64_t addend = 0;
  bool generic = false;  // generic(symbol)
};

struct Variable {
  std::string name;
  Space space = Space::kGlobal;
  Type type = Type::kB8;
  int64_t align = 1;
  int64_t bytes = 0;  // 0 for `extern .shared x[]`
  bool is_extern = false;
  std::vector<uint8_t> init;  // shorter than bytes: the rest is zero; empty: none
  std::vector<Relocation> relocations;
};

struct Register {
  std::string name;
  Type type = Type::kB32;
};

// A parameter of a function, in the order of its declaration.
struct Parameter {
  std::string name;
  Type type = Type::kB32;
  int64_t align = 1;
  int64_t bytes = 0;         // arrays: of all elements
  bool is_register = false;  // `.reg` parameters of old-style functions
  int reg = -1;              // then: index into registers
};

struct Function {
  std::string name;
  bool is_entry = false;
  bool is_declaration = false;
  std::vector<Parameter> returns;
  std::vector<Parameter> parameters;
  // Those declared one by one, and of ranges like %r<9> those that are used. Names may repeat: a
  // nested scope has registers of its own.
  std::vector<Register> registers;
  // Declared inside: shared, local, and param space of calls. Global and const ones move to the
  // module, as NAME@FUNCTION. Variables and labels of nested scopes whose name is taken are NAME#1,
  // NAME#2 and so on, here and in the operands, so that a name stands for one thing.
  std::vector<Variable> variables;
  std::vector<Instruction> instructions;
  std::map<std::string, int> labels;  // to the index of the next instruction
  std::map<std::string, std::vector<std::string>> branch_targets;  // .branchtargets lists
  SourceLocation location;
  int64_t max_threads[3] = {0, 0, 0};       // .maxntid; 0: not given
  int64_t required_threads[3] = {0, 0, 0};  // .reqntid
};

struct Module {
  int version_major = 0;
  int version_minor = 0;
  std::string target;                // "sm_80"
  std::map<int, std::string> files;  // of .file directives
  std::vector<Variable> variables;   // global, const and module-level shared
  // One a name: a definition takes the place of its declarations.
  std::vector<Function> functions;
  // Name to index. Both empty in a module made by hand: the vectors are searched then.
  std::map<std::string, int, std::less<>> variable_index;
  std::map<std::string, int, std::less<>> function_index;

  // nullptr: none of that name.
  const Function* FindFunction(std::string_view name) const;
  const Variable* FindVariable(std::string_view name) const;
};

struct ParseLimits {
  int64_t text_bytes_max = int64_t{64} << 20;
  int64_t instructions_max = 4'000'000;  // of all functions
  // Operands, modifiers, labels, declarations, relocations, by what they take: about 100 bytes
  // each.
  int64_t items_max = 16'000'000;
  int64_t registers_max = 1'000'000;              // of one function
  int64_t variable_bytes_max = int64_t{1} << 30;  // of all variables
  int depth_max = 64;  // of nested scopes, vectors and constant expressions
};

// Parses PTX ISA 1.0 to 9.x in time linear in the text; bytes after a NUL are not looked at. Errors
// are INVALID_ARGUMENT and begin with "line N:"; a text over a limit is RESOURCE_EXHAUSTED. An
// instruction whose opcode nobody knows is no error here: the program that uses it is refused.
absl::StatusOr<Module> ParseModule(std::string_view text, const ParseLimits& limits = {});

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_PTX_MODULE_H_
