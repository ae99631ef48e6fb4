#include "emulator/program/decoder.h"

#include "absl/strings/str_cat.h"

namespace assay::emulator {

void OpTable::Add(std::string_view mnemonic, DecodeFunction decode) {
  const auto [it, is_new] = functions_.try_emplace(std::string(mnemonic), decode);
  if (!is_new) it->second = nullptr;  // named twice: a defect that every use, and a test, shows
}

DecodeFunction OpTable::Find(std::string_view mnemonic) const {
  const auto found = functions_.find(mnemonic);
  return found == functions_.end() ? nullptr : found->second;
}

bool Modifiers::Take(std::string_view name) {
  if (at_end() || modifiers_[next_] != name) return false;
  ++next_;
  return true;
}

Type Modifiers::TakeType() {
  if (at_end()) return Type::kNone;
  const Type type = ParseType(modifiers_[next_]);
  if (type != Type::kNone) ++next_;
  return type;
}

absl::Status Modifiers::Finish() const {
  if (at_end()) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("modifier .", modifiers_[next_]));
}

absl::Status CheckOperandCount(const Instruction& instruction, size_t least, size_t most) {
  const size_t count = instruction.operands.size();
  if (count >= least && count <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("has ", count, " operands instead of ", least,
                                                 least == most ? "" : absl::StrCat(" to ", most)));
}

}  // namespace assay::emulator
