// cp.async, its groups, and its arrival at mbarriers.
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "emulator/execute/async_copy.h"
#include "emulator/execute/memory_access.h"
#include "emulator/execute/warp.h"
#include "emulator/memory/bits.h"
#include "emulator/ops/mbarrier.h"
#include "emulator/ops/memory_decode.h"
#include "emulator/ops/ops.h"

namespace assay::emulator {
namespace {

// Op: a and data are the destination, b and c source register and displacement constant, d the
// source size (kNoRegister: all), extra beyond kNarrowAddress the bytes, and whether the source
// register is a predicate that says "ignore".
constexpr uint32_t kIgnorePredicate = 2;
constexpr uint32_t kBytesShift = 8;

uint64_t SourceAddress(Warp* warp, const Op& op, int lane) {
  return Lanes<uint64_t>(warp, op.b)[lane] + Lanes<uint64_t>(warp, op.c)[lane];
}

// Bytes that are read; the rest of the destination becomes zero.
uint32_t SourceBytes(Warp* warp, const Op& op, int lane, uint32_t bytes) {
  if (op.d == kNoRegister) return bytes;
  if ((op.extra & kIgnorePredicate) != 0)
    return (PredicateLanes(warp, op.d) >> lane & 1) != 0 ? 0 : bytes;
  return Lanes<uint32_t>(warp, op.d)[lane];
}

// Reads in pieces that are naturally aligned: a source size may be any number.
bool ReadSource(Warp* warp, const Op& op, int lane, uint64_t address, uint32_t bytes,
                uint32_t whole, std::byte* data) {
  if (bytes == whole) return LoadLane(warp, op, lane, Space::kGlobal, address, bytes, data);
  for (uint32_t done = 0; done < bytes; ++done) {
    if (!LoadLane(warp, op, lane, Space::kGlobal, address + done, 1, data + done)) return false;
  }
  return true;
}

void Copy(Warp* warp, const Op& op, uint32_t mask) {
  WarpState* const state = StateOf(warp);
  Block& block = *warp->block;
  const uint32_t bytes = op.extra >> kBytesShift;
  alignas(64) uint64_t destinations[kLanes];
  ComputeAddresses(warp, op, destinations);
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    AsyncCopy copy;
    copy.pc = static_cast<uint32_t>(&op - block.program().ops.data());
    copy.lane = static_cast<uint8_t>(lane);
    copy.bytes = static_cast<uint8_t>(bytes);
    std::memset(copy.data, 0, sizeof(copy.data));
    const uint32_t given = SourceBytes(warp, op, lane, bytes);
    if (given > bytes) {
      ReportFault(warp, op, lane, FaultKind::kUnsupported,
                  absl::StrCat("the source size ", given, " is larger than the ", bytes,
                               " bytes that are copied"));
      return;
    }
    if (!ReadSource(warp, op, lane, SourceAddress(warp, op, lane), given, bytes, copy.data)) {
      if (warp->event == WarpEvent::kStopped) return;
    }
    uint64_t destination = destinations[lane];
    if (destination >= kSharedWindow) SplitGeneric(&destination);
    // A look at the place now, so that a wrong one is reported where it is named.
    if (destination < kSharedBase || destination - kSharedBase + bytes > block.shared_bytes() ||
        destination % bytes != 0) {
      StoreLane(warp, op, lane, Space::kShared, destination, bytes, copy.data);
      return;
    }
    copy.destination = static_cast<uint32_t>(destination);
    // It may land at any time from now until it is waited for.
    RecordSharedWrite(warp, op, lane, destination, bytes, copy.data);
    const uint64_t offset = destination - kSharedBase;
    ClearBits(block.shared_initialized(), offset, bytes);
    SetBits(block.shared_pending(), offset, bytes);
    state->async_open.push_back(copy);
  }
}

void Commit(Warp* warp, const Op& op, uint32_t mask) {
  WarpState* const state = StateOf(warp);
  state->async_groups.push_back(std::exchange(state->async_open, {}));
}

void WaitGroup(Warp* warp, const Op& op, uint32_t mask) {
  CompleteAsyncGroups(StateOf(warp), op.data);
}

void WaitAll(Warp* warp, const Op& op, uint32_t mask) { CompleteAsyncCopies(StateOf(warp)); }

// The arrival may come as soon as the copies have landed, so it comes at once.
void ArriveAtMbarrier(Warp* warp, const Op& op, uint32_t mask) {
  CompleteAsyncCopies(StateOf(warp));
  if (warp->event != WarpEvent::kStopped) MbarrierArriveAfterCopy(warp, op, mask);
}

absl::Status DecodeCopy(const Instruction& instruction, Modifiers* modifiers, Decoder* decoder,
                        Op* op) {
  if (!modifiers->Take("ca") && !modifiers->Take("cg"))
    return absl::UnimplementedError("cp.async needs .ca or .cg");
  while (!modifiers->at_end()) {
    if (modifiers->Take("shared") || modifiers->Take("shared::cta") || modifiers->Take("global"))
      continue;
    if (!TakeScopeOrHint(modifiers)) break;
  }
  ASSAY_RETURN_IF_ERROR(modifiers->Finish());
  ASSAY_RETURN_IF_ERROR(CheckOperandCount(instruction, 3, 5));
  const std::vector<Operand>& operands = instruction.operands;
  bool narrow = false;
  int64_t offset = 0;
  ASSAY_RETURN_IF_ERROR(decoder->Address(operands[0], &op->a, &offset, &narrow));
  op->data = static_cast<uint64_t>(offset);
  bool narrow_source = false;
  int64_t source_offset = 0;
  ASSAY_RETURN_IF_ERROR(decoder->Address(operands[1], &op->b, &source_offset, &narrow_source));
  if (narrow_source) return absl::InvalidArgumentError("has a source address of 32 bits");
  op->c = decoder->Constant(static_cast<uint64_t>(source_offset), 8);
  if (op->b == kNoRegister) op->b = decoder->Constant(0, 8);
  const uint64_t bytes = operands[2].bits;
  if (operands[2].kind != Operand::Kind::kInteger || (bytes != 4 && bytes != 8 && bytes != 16)) {
    return absl::InvalidArgumentError("copies 4, 8 or 16 bytes");
  }
  op->extra = static_cast<uint32_t>(bytes) << kBytesShift | (narrow ? kNarrowAddress : 0);
  if (operands.size() > 3) {
    // A size, a predicate that says "ignore", or a cache policy, which is a hint.
    bool negated = false;
    if (const auto ignore = decoder->Predicate(operands[3], &negated); ignore.ok() && !negated) {
      op->d = *ignore;
      op->extra |= kIgnorePredicate;
    } else if (const auto size = decoder->Source(operands[3], Type::kU32); size.ok()) {
      op->d = *size;
    } else {
      ASSAY_RETURN_IF_ERROR(decoder->Source(operands[3], Type::kB64).status());
    }
  }
  op->handler = Copy;
  return absl::OkStatus();
}

absl::Status DecodeCp(const Instruction& instruction, Decoder* decoder, Op* op) {
  Modifiers modifiers(instruction);
  decoder->info()->op_class = OpClass::kMemory;
  if (!modifiers.Take("async")) return absl::UnimplementedError("cp without .async");
  if (modifiers.Take("commit_group")) {
    op->handler = Commit;
    return modifiers.Finish();
  }
  if (modifiers.Take("wait_all")) {
    op->handler = WaitAll;
    return modifiers.Finish();
  }
  if (modifiers.Take("wait_group")) {
    ASSAY_RETURN_IF_ERROR(CheckOperandCount(instruction, 1, 1));
    if (instruction.operands[0].kind != Operand::Kind::kInteger)
      return absl::InvalidArgumentError("expects a number of groups");
    op->data = instruction.operands[0].bits;
    op->handler = WaitGroup;
    return modifiers.Finish();
  }
  if (modifiers.Take("mbarrier")) {
    if (!modifiers.Take("arrive"))
      return absl::UnimplementedError("cp.async.mbarrier without .arrive");
    const bool counted = modifiers.Take("noinc");
    if (!modifiers.Take("shared")) modifiers.Take("shared::cta");
    modifiers.Take("b64");
    ASSAY_RETURN_IF_ERROR(modifiers.Finish());
    ASSAY_RETURN_IF_ERROR(CheckOperandCount(instruction, 1, 1));
    ASSAY_RETURN_IF_ERROR(DecodeMbarrierAddress(instruction.operands[0], decoder, op));
    // Without .noinc the pending count is raised first, so that the arrival changes nothing.
    op->data = counted ? 1 : 0;
    op->handler = ArriveAtMbarrier;
    return absl::OkStatus();
  }
  return DecodeCopy(instruction, &modifiers, decoder, op);
}

}  // namespace

void AddAsyncCopyOps(OpTable* table) { table->Add("cp", DecodeCp); }

}  // namespace assay::emulator
