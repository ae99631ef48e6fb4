// bar and barrier: barriers of a block, with and without a count, and their reductions. bar.warp is
// in warp.cc.
#include <bit>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "emulator/execute/barrier.h"
#include "emulator/execute/block.h"
#include "emulator/execute/warp.h"
#include "emulator/ops/ops.h"
#include "emulator/ops/warp_barrier.h"

namespace assay::emulator {
namespace {

// Op: a the barrier's number, b the count of threads (kNoRegister: all), c the predicate of a
// reduction, dst its result. extra: BarrierReduction, and the bits below.
constexpr uint32_t kReductionMask = 3;
constexpr uint32_t kArrives = 4;    // does not wait
constexpr uint32_t kUnaligned = 8;  // lanes may come one by one
constexpr uint32_t kNegated = 16;   // the predicate is !c

void Barrier(Warp* warp, const Op& op, uint32_t mask) {
  if ((op.extra & kUnaligned) == 0 && !Converge(warp, op, mask, warp->live)) return;
  const int lane = std::countr_zero(mask);
  const uint32_t id = Lanes<uint32_t>(warp, op.a)[lane];
  if (id >= 16) {
    ReportFault(warp, op, lane, FaultKind::kUnsupported,
                absl::StrCat("a block has barriers 0 to 15, and this is ", id));
    return;
  }
  const uint32_t count = op.b == kNoRegister ? 0 : Lanes<uint32_t>(warp, op.b)[lane];
  if (op.b != kNoRegister &&
      (count == 0 || count % kLanes != 0 || count > warp->block->warp_count() * kLanes)) {
    ReportFault(
        warp, op, lane, FaultKind::kDeadlock,
        absl::StrCat("barrier ", id, " waits for ", count, " threads; it must be a multiple of ",
                     kLanes, ", and the block has ", warp->block->thread_count()));
    return;
  }
  uint32_t set = 0;
  if (op.c != kNoRegister) {
    const uint32_t predicate = PredicateLanes(warp, op.c);
    set = static_cast<uint32_t>(
        std::popcount(((op.extra & kNegated) != 0 ? ~predicate : predicate) & mask));
  }
  warp->block->ArriveAtBarrier(StateOf(warp), op, mask, id, count, (op.extra & kArrives) == 0, set);
}

absl::StatusOr<BarrierReduction> ParseReduction(Modifiers* modifiers) {
  if (modifiers->Take("popc")) return BarrierReduction::kCount;
  if (modifiers->Take("and")) return BarrierReduction::kAnd;
  if (modifiers->Take("or")) return BarrierReduction::kOr;
  return absl::UnimplementedError(
      absl::StrCat("barrier reduction .", std::string(modifiers->current())));
}

absl::Status DecodeReduction(const Instruction& instruction, BarrierReduction reduction,
                             Decoder* decoder, Op* op) {
  ASSAY_RETURN_IF_ERROR(CheckOperandCount(instruction, 3, 4));
  const std::vector<Operand>& operands = instruction.operands;
  if (reduction == BarrierReduction::kCount) {
    ASSAY_ASSIGN_OR_RETURN(op->dst, decoder->Destination(operands[0], Type::kU32));
  } else {
    ASSAY_ASSIGN_OR_RETURN(op->dst, decoder->PredicateDestination(operands[0]));
  }
  ASSAY_ASSIGN_OR_RETURN(op->a, decoder->Source(operands[1], Type::kU32));
  if (operands.size() == 4) {
    ASSAY_ASSIGN_OR_RETURN(op->b, decoder->Source(operands[2], Type::kU32));
  }
  bool negated = false;
  ASSAY_ASSIGN_OR_RETURN(op->c, decoder->Predicate(operands.back(), &negated));
  op->extra |= static_cast<uint32_t>(reduction) | (negated ? kNegated : 0);
  return absl::OkStatus();
}

absl::Status DecodeBarrier(const Instruction& instruction, Decoder* decoder, Op* op) {
  Modifiers modifiers(instruction);
  decoder->info()->op_class = OpClass::kControl;
  if (instruction.mnemonic == "bar" && modifiers.Take("warp")) {
    if (!modifiers.Take("sync")) return absl::UnimplementedError("bar.warp without .sync");
    ASSAY_RETURN_IF_ERROR(modifiers.Finish());
    return DecodeWarpBarrier(instruction, decoder, op);
  }
  modifiers.Take("cta");
  const bool arrives = modifiers.Take("arrive");
  const bool reduces = !arrives && modifiers.Take("red");
  if (!arrives && !reduces && !modifiers.Take("sync"))
    return absl::UnimplementedError("a barrier without .sync, .arrive or .red");
  BarrierReduction reduction = BarrierReduction::kNone;
  // barrier.cta.red.popc.aligned.u32 and bar.red.popc.u32
  if (reduces) {
    ASSAY_ASSIGN_OR_RETURN(reduction, ParseReduction(&modifiers));
  }
  const bool aligned = modifiers.Take("aligned") || instruction.mnemonic == "bar";
  if (reduces) modifiers.TakeType();
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  op->handler = Barrier;
  op->extra = (arrives ? kArrives : 0) | (aligned ? 0 : kUnaligned);
  if (reduces) {
    ASSAY_RETURN_IF_ERROR(DecodeReduction(instruction, reduction, decoder, op));
  } else {
    ASSAY_RETURN_IF_ERROR(CheckOperandCount(instruction, arrives ? 2 : 1, 2));
    ASSAY_ASSIGN_OR_RETURN(op->a, decoder->Source(instruction.operands[0], Type::kU32));
    if (instruction.operands.size() == 2) {
      ASSAY_ASSIGN_OR_RETURN(op->b, decoder->Source(instruction.operands[1], Type::kU32));
    }
  }
  return absl::OkStatus();
}

}  // namespace

void FinishBarrierReduction(Warp* warp, const Op& op, uint32_t mask, uint32_t set_count,
                            uint32_t arrived) {
  switch (static_cast<BarrierReduction>(op.extra & kReductionMask)) {
    case BarrierReduction::kNone:
      return;
    case BarrierReduction::kCount:
      EachLane(mask, [&](int lane) { Lanes<uint32_t>(warp, op.dst)[lane] = set_count; });
      return;
    case BarrierReduction::kAnd:
      SetPredicate(warp, op.dst, mask, set_count == arrived ? kAllLanes : 0);
      return;
    case BarrierReduction::kOr:
      SetPredicate(warp, op.dst, mask, set_count != 0 ? kAllLanes : 0);
      return;
  }
}

void AddBarrierOps(OpTable* table) {
  table->Add("bar", DecodeBarrier);
  table->Add("barrier", DecodeBarrier);
}

}  // namespace assay::emulator
