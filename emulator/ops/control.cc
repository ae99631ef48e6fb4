// bra, brx, ret, exit, call's steps, trap, fences and what else steers.
#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "emulator/execute/async_copy.h"
#include "emulator/execute/block.h"
#include "emulator/execute/warp.h"
#include "emulator/ops/ops.h"

namespace assay::emulator {
namespace {

void Branch(Warp* warp, const Op& op, uint32_t mask) {
  Counters& counters = warp->block->executor().counters;
  ++counters.branches;
  const auto target = static_cast<uint32_t>(op.data);
  if (mask == warp->active) {
    warp->pc = target;
    return;
  }
  ++counters.divergent_branches;
  StateOf(warp)->groups.push_back({warp->pc, warp->active & ~mask, 0});
  warp->active = mask;
  warp->pc = target;
  warp->event = WarpEvent::kRegroup;
}

// Branches of several targets: list holds them, a the index register.
void BranchIndexed(Warp* warp, const Op& op, uint32_t mask) {
  Counters& counters = warp->block->executor().counters;
  ++counters.branches;
  const uint32_t* const index = Lanes<uint32_t>(warp, op.a);
  const uint32_t* const targets = &warp->block->program().lists[op.list];
  std::vector<LaneGroup>& groups = StateOf(warp)->groups;
  if (mask != warp->active) groups.push_back({warp->pc, warp->active & ~mask, 0});
  uint32_t rest = mask;
  int ways = 0;
  while (rest != 0) {
    const int lane = std::countr_zero(rest);
    if (index[lane] >= op.list_size) {
      ReportFault(warp, op, lane, FaultKind::kOutOfBounds,
                  absl::StrCat("branch to entry ", index[lane], " of a table of ", op.list_size));
      return;
    }
    uint32_t same = 0;
    for (uint32_t r = rest; r != 0; r &= r - 1) {
      if (index[std::countr_zero(r)] == index[lane]) same |= r & -r;
    }
    groups.push_back({targets[index[lane]], same, 0});
    rest &= ~same;
    ++ways;
  }
  if (ways > 1) ++counters.divergent_branches;
  warp->active = 0;
  warp->event = WarpEvent::kRegroup;
}

void Exit(Warp* warp, const Op& op, uint32_t mask) {
  WarpState* const state = StateOf(warp);
  warp->live &= ~mask;
  warp->active &= ~mask;
  warp->event = WarpEvent::kRegroup;
  if (warp->live == 0) CompleteAsyncCopies(state);
  warp->block->CheckBarriers();
}

// Return from a function: a is the register of return addresses.
void Return(Warp* warp, const Op& op, uint32_t mask) {
  const uint32_t* const to = Lanes<uint32_t>(warp, op.a);
  std::vector<LaneGroup>& groups = StateOf(warp)->groups;
  if (mask != warp->active) groups.push_back({warp->pc, warp->active & ~mask, 0});
  uint32_t rest = mask;
  while (rest != 0) {
    const uint32_t target = to[std::countr_zero(rest)];
    uint32_t same = 0;
    for (uint32_t r = rest; r != 0; r &= r - 1) {
      if (to[std::countr_zero(r)] == target) same |= r & -r;
    }
    groups.push_back({target, same, 0});
    rest &= ~same;
  }
  warp->active = 0;
  warp->event = WarpEvent::kRegroup;
}

void Trap(Warp* warp, const Op& op, uint32_t mask) {
  ReportFault(warp, op, std::countr_zero(mask), FaultKind::kTrap, "the kernel executes trap");
}

void Fence(Warp* warp, const Op& op, uint32_t mask) { StateOf(warp)->fenced = true; }

void Nothing(Warp* warp, const Op& op, uint32_t mask) {}

absl::Status DecodeBranch(const Instruction& instruction, Decoder* decoder, Op* op) {
  Modifiers modifiers(instruction);
  modifiers.Take("uni");
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  ASSAY_RETURN_IF_ERROR(CheckOperandCount(instruction, 1, 1));
  if (instruction.operands[0].kind != Operand::Kind::kSymbol)
    return absl::InvalidArgumentError("branches to no label");
  op->handler = Branch;
  decoder->info()->op_class = OpClass::kControl;
  ASSAY_RETURN_IF_ERROR(decoder->BranchTo(instruction.operands[0].symbol, op));
  if (op->list_size != 0) return absl::InvalidArgumentError("branches to a list of labels");
  return absl::OkStatus();
}

absl::Status DecodeBranchIndexed(const Instruction& instruction, Decoder* decoder, Op* op) {
  Modifiers modifiers(instruction);
  if (!modifiers.Take("idx")) return absl::UnimplementedError("brx without .idx");
  modifiers.Take("uni");
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  ASSAY_RETURN_IF_ERROR(CheckOperandCount(instruction, 2, 2));
  ASSAY_ASSIGN_OR_RETURN(op->a, decoder->Source(instruction.operands[0], Type::kU32));
  op->handler = BranchIndexed;
  decoder->info()->op_class = OpClass::kControl;
  ASSAY_RETURN_IF_ERROR(decoder->BranchTo(instruction.operands[1].symbol, op));
  if (op->list_size == 0) return absl::InvalidArgumentError("has no list of labels");
  return absl::OkStatus();
}

absl::Status DecodeExit(const Instruction& instruction, Decoder* decoder, Op* op) {
  ASSAY_RETURN_IF_ERROR(CheckOperandCount(instruction, 0, 0));
  op->handler = Exit;
  decoder->info()->op_class = OpClass::kControl;
  return absl::OkStatus();
}

absl::Status DecodeReturn(const Instruction& instruction, Decoder* decoder, Op* op) {
  Modifiers modifiers(instruction);
  modifiers.Take("uni");
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  decoder->info()->op_class = OpClass::kControl;
  op->a = decoder->ReturnAddress();
  op->handler = op->a == kNoRegister ? Exit : Return;
  return absl::OkStatus();
}

absl::Status DecodeTrap(const Instruction& instruction, Decoder* decoder, Op* op) {
  op->handler = Trap;
  decoder->info()->op_class = OpClass::kControl;
  return absl::OkStatus();
}

absl::Status DecodeFence(const Instruction& instruction, Decoder* decoder, Op* op) {
  decoder->info()->op_class = OpClass::kControl;
  Modifiers modifiers(instruction);
  const bool membar = instruction.mnemonic == "membar";
  while (!modifiers.at_end()) {
    if (membar ? modifiers.Take("cta") || modifiers.Take("gl") || modifiers.Take("sys")
               : modifiers.Take("sc") || modifiers.Take("acq_rel") || modifiers.Take("acquire") ||
                     modifiers.Take("release") || modifiers.Take("cta") || modifiers.Take("gpu") ||
                     modifiers.Take("sys") || modifiers.Take("cluster") ||
                     modifiers.Take("mbarrier_init")) {
      continue;
    }
    // Every proxy sees the same memory here: fence.proxy.async, .alias, .tensormap::generic.
    if (!membar && modifiers.Take("proxy") && !modifiers.at_end()) {
      modifiers.Skip();
      modifiers.Take("global");
      if (!modifiers.Take("shared::cta")) modifiers.Take("shared::cluster");
      continue;
    }
    break;
  }
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  op->handler = Fence;
  return absl::OkStatus();
}

absl::Status DecodeNothing(const Instruction& instruction, Decoder* decoder, Op* op) {
  op->handler = Nothing;
  decoder->info()->op_class = OpClass::kControl;
  return absl::OkStatus();
}

}  // namespace

void AddControlOps(OpTable* table) {
  table->Add("bra", DecodeBranch);
  table->Add("brx", DecodeBranchIndexed);
  table->Add("ret", DecodeReturn);
  table->Add("exit", DecodeExit);
  table->Add("trap", DecodeTrap);
  table->Add("brkpt", DecodeTrap);
  table->Add("membar", DecodeFence);
  table->Add("fence", DecodeFence);
  table->Add("pmevent", DecodeNothing);
  table->Add("griddepcontrol", DecodeNothing);
  table->Add("setmaxnreg", DecodeNothing);  // registers are not scarce here
}

}  // namespace assay::emulator
