#include "emulator/ops/memory_decode.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace assay::emulator {

bool TakeSpace(Modifiers* modifiers, Space* space) {
  std::string_view name = modifiers->current();
  if (name == "shared::cta") name = "shared";
  if (name == "param::entry" || name == "param::func") name = "param";
  const Space found = ParseSpace(name);
  if (found == Space::kGeneric || found == Space::kRegister) return false;
  *space = found;
  modifiers->Skip();
  return true;
}

bool TakeScopeOrHint(Modifiers* modifiers) {
  static constexpr std::string_view kNames[] = {"cta", "gpu", "sys", "ca", "cg", "cs",
                                                "lu",  "cv",  "wb",  "wt", "nc", "L2::cache_hint"};
  for (const std::string_view name : kNames) {
    if (modifiers->Take(name)) return true;
  }
  // L1::evict_last, L2::128B, level::eviction priorities and prefetch sizes.
  const std::string_view name = modifiers->current();
  if (absl::StartsWith(absl::string_view(name.data(), name.size()), "L1::") ||
      absl::StartsWith(absl::string_view(name.data(), name.size()), "L2::")) {
    modifiers->Skip();
    return true;
  }
  return false;
}

absl::StatusOr<MemoryModifiers> DecodeMemoryModifiers(const Instruction& instruction) {
  MemoryModifiers m;
  Modifiers modifiers(instruction);
  while (!modifiers.at_end()) {
    if (TakeScopeOrHint(&modifiers) || TakeSpace(&modifiers, &m.space)) continue;
    if (modifiers.Take("weak")) continue;
    if (modifiers.Take("volatile") || modifiers.Take("relaxed") || modifiers.Take("mmio")) {
      m.is_volatile = true;
    } else if (modifiers.Take("acquire") || modifiers.Take("release")) {
      m.is_volatile = m.orders = true;
    } else if (modifiers.Take("v2")) {
      m.vector = 2;
    } else if (modifiers.Take("v4")) {
      m.vector = 4;
    } else if (modifiers.Take("v8")) {
      m.vector = 8;
    } else if (const Type type = modifiers.TakeType(); type != Type::kNone) {
      m.type = type;
    } else {
      break;
    }
  }
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  if (m.type == Type::kNone || m.type == Type::kPred)
    return absl::InvalidArgumentError("names no type");
  return m;
}

}  // namespace assay::emulator
