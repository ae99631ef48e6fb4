#include "emulator/ptx/module.h"

#include <algorithm>
#include <cstddef>

namespace assay::emulator {
namespace {

struct TypeEntry {
  std::string_view name;
  int bytes;
};

// By the value of Type.
constexpr TypeEntry kTypes[] = {
    {"", 0},       {"pred", 1}, {"b8", 1},  {"b16", 2}, {"b32", 4},   {"b64", 8},
    {"b128", 16},  {"u8", 1},   {"u16", 2}, {"u32", 4}, {"u64", 8},   {"s8", 1},
    {"s16", 2},    {"s32", 4},  {"s64", 8}, {"f16", 2}, {"f16x2", 4}, {"bf16", 2},
    {"bf16x2", 4}, {"tf32", 4}, {"f32", 4}, {"f64", 8}, {"u16x2", 4}, {"s16x2", 4},
};
static_assert(std::size(kTypes) == static_cast<size_t>(Type::kS16x2) + 1);

// By the value of Space.
constexpr std::string_view kSpaces[] = {"generic", "reg",   "const", "global",
                                        "local",   "param", "shared"};
static_assert(std::size(kSpaces) == static_cast<size_t>(Space::kShared) + 1);

template <typename T>
const T* Find(const std::vector<T>& all, const std::map<std::string, int, std::less<>>& index,
              std::string_view name) {
  if (index.empty()) {
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const T& t) { return t.name == name; });
    return found == all.end() ? nullptr : &*found;
  }
  const auto found = index.find(name);
  return found == index.end() ? nullptr : &all[static_cast<size_t>(found->second)];
}

}  // namespace

Type ParseType(std::string_view name) {
  for (size_t i = 1; i < std::size(kTypes); ++i) {
    if (kTypes[i].name == name) return static_cast<Type>(i);
  }
  return Type::kNone;
}

std::string_view TypeName(Type type) { return kTypes[static_cast<size_t>(type)].name; }

int TypeBytes(Type type) { return kTypes[static_cast<size_t>(type)].bytes; }

Space ParseSpace(std::string_view name) {
  for (size_t i = 1; i < std::size(kSpaces); ++i) {
    if (kSpaces[i] == name) return static_cast<Space>(i);
  }
  return Space::kGeneric;
}

std::string_view SpaceName(Space space) { return kSpaces[static_cast<size_t>(space)]; }

bool Instruction::Has(std::string_view modifier) const {
  return std::find(modifiers.begin(), modifiers.end(), modifier) != modifiers.end();
}

const Function* Module::FindFunction(std::string_view name) const {
  return Find(functions, function_index, name);
}

const Variable* Module::FindVariable(std::string_view name) const {
  return Find(variables, variable_index, name);
}

}  // namespace assay::emulator
