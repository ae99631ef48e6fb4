#include "emulator/ptx/scope.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/strings.h"

namespace assay::emulator {
namespace {

// More digits than an index of ParseLimits::registers_max can have are part of the prefix.
constexpr size_t kIndexDigitsMax = 9;

}  // namespace

Scopes::Scopes(Reader* reader, const Module* module, Function* function)
    : reader_(reader), module_(module), function_(function), scopes_(1) {}

absl::Status Scopes::Open() {
  ASSAY_RETURN_IF_ERROR(reader_->CheckDepth(depth() + 1));
  scopes_.emplace_back();
  return absl::OkStatus();
}

void Scopes::Close() {
  Scope inner = std::move(scopes_.back());
  scopes_.pop_back();
  Forget(inner);
  ResolveUses(&inner);
  std::vector<Use>& outer = scopes_.back().uses;
  if (outer.empty()) {
    outer = std::move(inner.uses);
  } else {
    std::move(inner.uses.begin(), inner.uses.end(), std::back_inserter(outer));
  }
}

void Scopes::Finish(std::vector<Reference>* unresolved) {
  Scope& scope = scopes_.front();
  ResolveUses(&scope);
  for (const Use& use : scope.uses) unresolved->push_back(use.reference);
}

void Scopes::Forget(const Scope& scope) {
  for (const absl::string_view name : scope.names) bindings_[name].pop_back();
  for (const absl::string_view prefix : scope.prefixes) ranges_[prefix].pop_back();
}

void Scopes::ResolveUses(Scope* scope) {
  if (scope->labels.empty()) return;
  const auto is_resolved = [&](const Use& use) {
    const auto label = scope->labels.find(Av(use.reference.name));
    if (label == scope->labels.end()) return false;
    *use.where = label->second;
    return true;
  };
  scope->uses.erase(std::remove_if(scope->uses.begin(), scope->uses.end(), is_resolved),
                    scope->uses.end());
}

absl::Status Scopes::Bind(std::string_view name, Binding binding) {
  ASSAY_RETURN_IF_ERROR(reader_->Charge(1));
  binding.depth = depth();
  std::vector<Binding>& stack = bindings_[Av(name)];
  if (!stack.empty() && stack.back().depth == depth()) {
    return reader_->Error(absl::StrCat("'", Av(name), "' is already declared in this scope"));
  }
  stack.push_back(std::move(binding));
  scopes_.back().names.push_back(Av(name));
  return absl::OkStatus();
}

absl::Status Scopes::CountRegisters(int64_t count) {
  if (count <= reader_->limits().registers_max - declared_registers_) {
    declared_registers_ += count;
    return absl::OkStatus();
  }
  return reader_->Exhausted(absl::StrCat("function '", function_->name, "' declares more than ",
                                         reader_->limits().registers_max, " registers"));
}

int Scopes::AddRegister(std::string_view name, Type type) {
  Register made;
  made.name = std::string(name);
  made.type = type;
  function_->registers.push_back(std::move(made));
  return static_cast<int>(function_->registers.size()) - 1;
}

absl::Status Scopes::DeclareRegister(std::string_view name, Type type, int width, int* reg) {
  ASSAY_RETURN_IF_ERROR(CountRegisters(width));
  Binding binding;
  binding.kind = width == 1 ? Binding::Kind::kRegister : Binding::Kind::kVector;
  binding.width = width;
  binding.reg = static_cast<int>(function_->registers.size());
  ASSAY_RETURN_IF_ERROR(Bind(name, binding));
  *reg = binding.reg;
  if (width == 1) {
    AddRegister(name, type);
    return absl::OkStatus();
  }
  for (int i = 0; i < width; ++i) {
    AddRegister(absl::StrCat(Av(name), ".", std::string(1, "xyzw"[i])), type);
  }
  return absl::OkStatus();
}

absl::Status Scopes::DeclareRange(std::string_view prefix, Type type, int64_t count) {
  ASSAY_RETURN_IF_ERROR(reader_->Charge(2));
  ASSAY_RETURN_IF_ERROR(CountRegisters(count));
  std::vector<Range>& stack = ranges_[Av(prefix)];
  if (!stack.empty() && stack.back().depth == depth()) {
    return reader_->Error(
        absl::StrCat("registers '", Av(prefix), "<...>' are already declared in this scope"));
  }
  Range range;
  range.depth = depth();
  range.type = type;
  range.count = static_cast<uint32_t>(count);
  stack.push_back(std::move(range));
  scopes_.back().prefixes.push_back(Av(prefix));
  return absl::OkStatus();
}

std::string Scopes::Unique(std::string_view name) {
  const auto [taken, is_new] = taken_.try_emplace(Av(name), 0);
  if (is_new && !module_->variable_index.contains(name) &&
      !module_->function_index.contains(name)) {
    return std::string(name);
  }
  return absl::StrCat(Av(name), "#", ++taken->second);
}

absl::Status Scopes::DeclareVariable(std::string_view name, std::string_view suffix,
                                     std::string* unique) {
  Binding binding;
  binding.kind = Binding::Kind::kVariable;
  binding.unique = absl::StrCat(Unique(name), Av(suffix));
  *unique = binding.unique;
  return Bind(name, std::move(binding));
}

absl::Status Scopes::DeclareLabel(std::string_view name, std::string* unique) {
  ASSAY_RETURN_IF_ERROR(reader_->Charge(2));
  const auto [label, is_new] = scopes_.back().labels.try_emplace(Av(name));
  if (!is_new) {
    return reader_->Error(absl::StrCat("label '", Av(name), "' is already declared in this scope"));
  }
  label->second = Unique(name);
  *unique = label->second;
  return absl::OkStatus();
}

Binding Scopes::Find(std::string_view name) {
  const auto stack = bindings_.find(Av(name));
  const bool is_bound = stack != bindings_.end() && !stack->second.empty();
  const int depth = is_bound ? stack->second.back().depth : 0;
  Binding result;
  result.reg = FindInRanges(name, depth);
  if (result.reg >= 0) {
    result.kind = Binding::Kind::kRegister;
    return result;
  }
  return is_bound ? stack->second.back() : result;
}

int Scopes::FindInRanges(std::string_view name, int depth) {
  if (ranges_.empty()) return -1;
  Range* found = nullptr;
  uint32_t found_index = 0;
  uint32_t index = 0;
  uint32_t scale = 1;
  for (size_t digits = 1; digits <= kIndexDigitsMax && digits < name.size(); ++digits) {
    const char c = name[name.size() - digits];
    if (c < '0' || c > '9') break;
    index += static_cast<uint32_t>(c - '0') * scale;
    scale *= 10;
    // %r01 is not %r1.
    if (c == '0' && digits > 1) continue;
    const auto stack = ranges_.find(Av(name.substr(0, name.size() - digits)));
    if (stack == ranges_.end()) continue;
    for (auto range = stack->second.rbegin(); range != stack->second.rend(); ++range) {
      if (range->depth <= depth) break;
      if (index >= range->count) continue;
      found = &*range;
      found_index = index;
      depth = range->depth;
      break;
    }
  }
  if (found == nullptr) return -1;
  const auto [used, is_new] = found->used.try_emplace(found_index, 0);
  if (is_new) used->second = AddRegister(name, found->type);
  return used->second;
}

void Scopes::Refer(const Reference& reference, std::string* where) {
  Use use;
  use.reference = reference;
  use.where = where;
  scopes_.back().uses.push_back(use);
}

}  // namespace assay::emulator
