// Operands: registers, constants, addresses and labels, and where they lie.
#include <bit>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "emulator/program/program_builder.h"
#include "emulator/program/special_registers.h"

namespace assay::emulator {
namespace {

constexpr int64_t kRegisterBytesMax = 8 << 20;  // of one warp
constexpr size_t kTargetsMax = std::numeric_limits<uint16_t>::max();
constexpr size_t kListEntriesMax = 4'000'000;

// One block a cluster.
bool IsClusterSize(std::string_view special) {
  return special == "%cluster_nctarank" || special == "%cluster_nctaid.x" ||
         special == "%cluster_nctaid.y" || special == "%cluster_nctaid.z";
}

// Bytes of a lane in the register file.
int SlotBytes(Type type) { return std::max(2, TypeBytes(type)); }

}  // namespace

uint32_t ProgramBuilder::Allocate(int64_t bytes_per_lane) {
  const int64_t offset = register_bytes_;
  register_bytes_ += (bytes_per_lane * kLanes + 63) / 64 * 64;
  if (register_bytes_ <= kRegisterBytesMax) return static_cast<uint32_t>(offset);
  register_bytes_ = kRegisterBytesMax + 1;  // and more does not overflow
  return 0;
}

absl::Status ProgramBuilder::CheckRegisterBytes() const {
  if (register_bytes_ <= kRegisterBytesMax) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("kernel ", program_->kernel, " needs more than ", kRegisterBytesMax / 1024,
                   " KiB of registers and param space of calls a warp"));
}

uint32_t ProgramBuilder::Scratch(int bytes_per_lane) { return Allocate(bytes_per_lane); }

uint32_t ProgramBuilder::Constant(uint64_t bits, int bytes) {
  if (bytes < 8) bits &= (uint64_t{1} << (8 * bytes)) - 1;
  const auto [it, is_new] = constants_.try_emplace({bits, bytes}, 0);
  if (is_new) {
    it->second = Allocate(bytes);
    program_->constants.push_back({it->second, static_cast<uint8_t>(bytes), bits});
  }
  return it->second;
}

uint32_t ProgramBuilder::AddList(const std::vector<uint32_t>& values) {
  const auto first = static_cast<uint32_t>(program_->lists.size());
  program_->lists.insert(program_->lists.end(), values.begin(), values.end());
  return first;
}

absl::StatusOr<uint32_t> ProgramBuilder::RegisterOffset(int reg, bool writes) {
  auto index = static_cast<uint32_t>(reg);
  const auto instruction = static_cast<uint32_t>(current_->op_of_instruction.size() - 1);
  current_->uses.push_back({instruction, index, writes && instruction_->guard < 0});
  if (!current_->places.empty()) index = current_->places[index];
  uint32_t& offset = current_->registers[index];
  if (offset == kNoRegister) offset = Allocate(SlotBytes(RegisterType(reg)));
  return offset;
}

absl::StatusOr<uint64_t> ProgramBuilder::SymbolAddress(std::string_view name) {
  if (const auto shared = shared_.find(name); shared != shared_.end()) return shared->second;
  if (const auto local = current_->locals.find(name); local != current_->locals.end())
    return local->second;
  if (const auto param = current_->params.find(name); param != current_->params.end()) {
    if (param->second.is_kernel_parameter) return param->second.offset;
    return absl::UnimplementedError(absl::StrCat("takes the address of ", std::string(name),
                                                 ", which is param space of a call"));
  }
  if (module_.FindFunction(name) != nullptr) {
    return absl::UnimplementedError(
        absl::StrCat("takes the address of function ", std::string(name)));
  }
  return resolve_(name);
}

uint64_t ProgramBuilder::ImmediateBits(const Operand& operand, Type type) const {
  if (operand.kind == Operand::Kind::kInteger) {
    if (type == Type::kF32)
      return std::bit_cast<uint32_t>(static_cast<float>(static_cast<int64_t>(operand.bits)));
    if (type == Type::kF64)
      return std::bit_cast<uint64_t>(static_cast<double>(static_cast<int64_t>(operand.bits)));
    return operand.bits;
  }
  const bool wants_single = TypeBytes(type) == 4;
  if (operand.single) {
    const auto value = std::bit_cast<float>(static_cast<uint32_t>(operand.bits));
    return wants_single ? operand.bits : std::bit_cast<uint64_t>(static_cast<double>(value));
  }
  if (wants_single)
    return std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(operand.bits)));
  return operand.bits;
}

absl::StatusOr<uint32_t> ProgramBuilder::Source(const Operand& operand, Type type) {
  int width = 0;
  ASSAY_ASSIGN_OR_RETURN(const uint32_t offset, SourceAnyWidth(operand, type, &width));
  if (width != SlotBytes(type)) {
    return absl::InvalidArgumentError(
        absl::StrCat("reads a register of ", 8 * width, " bits as .", std::string(TypeName(type))));
  }
  return offset;
}

absl::StatusOr<uint32_t> ProgramBuilder::SourceAnyWidth(const Operand& operand, Type type,
                                                        int* width) {
  *width = SlotBytes(type);
  if (*width > 8 && operand.kind != Operand::Kind::kRegister)
    return absl::InvalidArgumentError("has a constant of 128 bits");
  switch (operand.kind) {
    case Operand::Kind::kRegister:
      if (RegisterType(operand.reg) == Type::kPred)
        return absl::InvalidArgumentError("reads a predicate as a value");
      if (operand.negated) return absl::InvalidArgumentError("negates what is no predicate");
      *width = SlotBytes(RegisterType(operand.reg));
      if (*width < TypeBytes(type)) {
        return absl::InvalidArgumentError(
            absl::StrCat("reads ", 8 * TypeBytes(type), " bits of a register of ", 8 * *width));
      }
      return RegisterOffset(operand.reg);
    case Operand::Kind::kInteger:
      return Constant(ImmediateBits(operand, type), *width);
    case Operand::Kind::kFloat:
      if (TypeBytes(type) < 4)
        return absl::InvalidArgumentError("has a floating-point constant of a type that has none");
      return Constant(ImmediateBits(operand, type), *width);
    case Operand::Kind::kSymbol: {
      if (*width < 4) return absl::InvalidArgumentError("keeps an address in less than 32 bits");
      ASSAY_ASSIGN_OR_RETURN(const uint64_t address, SymbolAddress(operand.symbol));
      return Constant(address + static_cast<uint64_t>(operand.offset), *width);
    }
    case Operand::Kind::kSpecial: {
      if (IsClusterSize(operand.symbol)) {
        *width = 4;
        return Constant(1, 4);
      }
      const std::optional<SpecialRegister> which = FindSpecialRegister(operand.symbol);
      if (!which.has_value())
        return absl::UnimplementedError(absl::StrCat("special register ", operand.symbol));
      const auto [it, is_new] = specials_.try_emplace(*which, 0);
      if (is_new) {
        it->second = Allocate(4);
        program_->specials.push_back({*which, it->second});
      }
      *width = 4;
      return it->second;
    }
    default:
      return absl::InvalidArgumentError("has an operand that is neither a register nor a constant");
  }
}

absl::StatusOr<uint32_t> ProgramBuilder::Destination(const Operand& operand, Type type) {
  int width = 0;
  ASSAY_ASSIGN_OR_RETURN(const uint32_t offset, DestinationAnyWidth(operand, type, &width));
  if (width != SlotBytes(type)) {
    return absl::InvalidArgumentError(absl::StrCat("writes .", std::string(TypeName(type)),
                                                   " to a register of ", 8 * width, " bits"));
  }
  return offset;
}

absl::StatusOr<uint32_t> ProgramBuilder::DestinationAnyWidth(const Operand& operand, Type type,
                                                             int* width) {
  *width = SlotBytes(type);
  if (operand.kind == Operand::Kind::kSink) return Scratch(*width);
  if (operand.kind != Operand::Kind::kRegister || RegisterType(operand.reg) == Type::kPred) {
    return absl::InvalidArgumentError("writes to what is no register of a value");
  }
  *width = SlotBytes(RegisterType(operand.reg));
  if (*width < TypeBytes(type)) {
    return absl::InvalidArgumentError(
        absl::StrCat("writes ", 8 * TypeBytes(type), " bits to a register of ", 8 * *width));
  }
  return RegisterOffset(operand.reg, true);
}

absl::StatusOr<uint32_t> ProgramBuilder::Predicate(const Operand& operand, bool* negated) {
  *negated = operand.negated;
  if (operand.kind == Operand::Kind::kInteger) {
    const auto [it, is_new] = constants_.try_emplace({operand.bits != 0 ? 1 : 0, 1}, 0);
    if (is_new) {
      it->second = Allocate(2);
      program_->constants.push_back({it->second, 1, operand.bits != 0 ? uint64_t{1} : 0});
    }
    return it->second;
  }
  if (operand.kind != Operand::Kind::kRegister || RegisterType(operand.reg) != Type::kPred) {
    return absl::InvalidArgumentError("expects a predicate");
  }
  return RegisterOffset(operand.reg);
}

absl::StatusOr<uint32_t> ProgramBuilder::PredicateDestination(const Operand& operand) {
  if (operand.kind == Operand::Kind::kSink) return Scratch(2);
  bool negated = false;
  if (operand.kind == Operand::Kind::kInteger)
    return absl::InvalidArgumentError("writes to a constant");
  ASSAY_ASSIGN_OR_RETURN(const uint32_t offset, Predicate(operand, &negated));
  if (negated) return absl::InvalidArgumentError("writes to a negated predicate");
  return offset;
}

absl::StatusOr<uint32_t> ProgramBuilder::PairPredicate(const Operand& operand) {
  if (operand.pair < 0) return kNoRegister;
  if (RegisterType(operand.pair) != Type::kPred)
    return absl::InvalidArgumentError("has a second destination that is no predicate");
  return RegisterOffset(operand.pair);
}

absl::Status ProgramBuilder::Address(const Operand& operand, uint32_t* reg, int64_t* offset,
                                     bool* narrow) {
  *reg = kNoRegister;
  *offset = operand.offset;
  *narrow = false;
  if (operand.kind == Operand::Kind::kSymbol ||
      (operand.kind == Operand::Kind::kAddress && !operand.symbol.empty())) {
    ASSAY_ASSIGN_OR_RETURN(const uint64_t address, SymbolAddress(operand.symbol));
    *offset = static_cast<int64_t>(address + static_cast<uint64_t>(operand.offset));
    return absl::OkStatus();
  }
  if (operand.kind == Operand::Kind::kInteger) {
    *offset = static_cast<int64_t>(operand.bits);
    return absl::OkStatus();
  }
  if (operand.kind != Operand::Kind::kAddress && operand.kind != Operand::Kind::kRegister) {
    return absl::InvalidArgumentError("has no address where one is expected");
  }
  if (!operand.elements.empty())
    return absl::UnimplementedError("tensor coordinates in an address");
  if (operand.reg < 0) return absl::OkStatus();
  const int bytes = TypeBytes(RegisterType(operand.reg));
  if (RegisterType(operand.reg) == Type::kPred || (bytes != 4 && bytes != 8)) {
    return absl::InvalidArgumentError(
        "has an address in a register that is not 32 or 64 bits wide");
  }
  *narrow = bytes == 4;
  ASSAY_ASSIGN_OR_RETURN(*reg, RegisterOffset(operand.reg));
  return absl::OkStatus();
}

absl::StatusOr<ParamPlace> ProgramBuilder::FindParam(std::string_view name) {
  const auto found = current_->params.find(name);
  if (found == current_->params.end())
    return absl::InvalidArgumentError(absl::StrCat("no parameter is named ", std::string(name)));
  return found->second;
}

absl::Status ProgramBuilder::BranchTo(std::string_view label, Op* op) {
  const Function& function = *current_->function;
  LabelFixup fixup;
  fixup.layout = current_;
  const auto add = [&](const std::string& name) -> absl::Status {
    const auto found = function.labels.find(name);
    if (found == function.labels.end())
      return absl::InvalidArgumentError(
          absl::StrCat("branches to label ", name, ", which is not there"));
    fixup.instructions.push_back(found->second);
    return absl::OkStatus();
  };
  if (const auto list = function.branch_targets.find(std::string(label));
      list != function.branch_targets.end()) {
    fixup.is_list = true;
    const size_t count = list->second.size();
    if (count > kTargetsMax || program_->lists.size() + count > kListEntriesMax) {
      return absl::ResourceExhaustedError(
          absl::StrCat("branches to one of ", count, " labels; the limit is ", kTargetsMax,
                       " a branch, and ", kListEntriesMax, " a kernel"));
    }
    for (const std::string& name : list->second) ASSAY_RETURN_IF_ERROR(add(name));
    op->list = AddList(std::vector<uint32_t>(list->second.size(), 0));
    op->list_size = static_cast<uint16_t>(list->second.size());
  } else {
    ASSAY_RETURN_IF_ERROR(add(std::string(label)));
  }
  pending_labels_.push_back(std::move(fixup));
  return absl::OkStatus();
}

absl::Status ProgramBuilder::AddContext(const absl::Status& status,
                                        const Instruction& instruction) const {
  return absl::Status(
      status.code(),
      absl::StrCat("PTX line ", instruction.location.ptx_line, ", kernel ", program_->kernel, ": ",
                   instruction.opcode, absl::IsUnimplemented(status) ? " is not emulated: " : " ",
                   status.message()));
}

}  // namespace assay::emulator
