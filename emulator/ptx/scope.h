// The names of a function body: registers, variables and labels of nested scopes.
//
// Looking a name up takes constant time, however many registers a range declares: those of a range
// are made when they are first used. Not thread-safe; what the constructor takes must outlive it,
// and so must the names.
#ifndef ASSAY_EMULATOR_PTX_SCOPE_H_
#define ASSAY_EMULATOR_PTX_SCOPE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "emulator/ptx/module.h"
#include "emulator/ptx/reader.h"

namespace assay::emulator {

// Where a name was used.
struct Reference {
  std::string_view name;
  int line = 0;
};

// What a name stands for.
struct Binding {
  enum class Kind : uint8_t { kNone, kRegister, kVector, kVariable };
  Kind kind = Kind::kNone;
  int depth = 0;
  int reg = -1;  // of a vector: the first of `width`
  int width = 1;
  std::string unique;  // of a variable: its name in the function
};

class Scopes {
 public:
  Scopes(Reader* reader, const Module* module, Function* function);
  Scopes(const Scopes&) = delete;
  Scopes& operator=(const Scopes&) = delete;

  absl::Status Open();
  // Ends the innermost scope: what it declared is forgotten, and uses of its labels that were
  // renamed are corrected. The outermost one ends with Finish.
  void Close();
  int depth() const { return static_cast<int>(scopes_.size()); }
  // Ends the outermost scope; `unresolved` gets the names that nothing in the function declares.
  void Finish(std::vector<Reference>* unresolved);

  // INVALID_ARGUMENT for a name that this scope already has.
  absl::Status DeclareRegister(std::string_view name, Type type, int width, int* reg);
  absl::Status DeclareRange(std::string_view prefix, Type type, int64_t count);
  // `suffix` is put behind the unique name.
  absl::Status DeclareVariable(std::string_view name, std::string_view suffix, std::string* unique);
  // A label, or the name of a list of targets or of a prototype.
  absl::Status DeclareLabel(std::string_view name, std::string* unique);
  // A name that no other variable or label of the function has, made from `name`.
  std::string Unique(std::string_view name);

  // kNone: not declared so far.
  Binding Find(std::string_view name);
  // A name that Find does not know is used. It is that of a label to come, or the module's:
  // `*where` holds the name, is corrected when the label is renamed, and must stay in its place.
  void Refer(const Reference& reference, std::string* where);

 private:
  struct Range {
    int depth = 0;
    Type type = Type::kB32;
    uint32_t count = 0;
    absl::flat_hash_map<uint32_t, int> used;
  };
  struct Use {
    Reference reference;
    std::string* where = nullptr;
  };
  struct Scope {
    std::vector<absl::string_view> names;
    std::vector<absl::string_view> prefixes;
    absl::flat_hash_map<absl::string_view, std::string> labels;
    std::vector<Use> uses;
  };

  absl::Status Bind(std::string_view name, Binding binding);
  absl::Status CountRegisters(int64_t count);
  int AddRegister(std::string_view name, Type type);
  // The register of a range in a scope deeper than `depth`; -1: none.
  int FindInRanges(std::string_view name, int depth);
  void Forget(const Scope& scope);
  // Corrects the uses of the scope's labels and drops them.
  void ResolveUses(Scope* scope);

  Reader* reader_;
  const Module* module_;
  Function* function_;
  std::vector<Scope> scopes_;
  absl::flat_hash_map<absl::string_view, std::vector<Binding>> bindings_;
  absl::flat_hash_map<absl::string_view, std::vector<Range>> ranges_;
  absl::flat_hash_map<absl::string_view, int> taken_;  // names to the last number given
  int64_t declared_registers_ = 0;
};

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_PTX_SCOPE_H_
