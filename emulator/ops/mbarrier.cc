#include "emulator/ops/mbarrier.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "emulator/execute/block.h"
#include "emulator/execute/memory_access.h"
#include "emulator/execute/warp.h"
#include "emulator/ops/memory_decode.h"
#include "emulator/ops/ops.h"

namespace assay::emulator {
namespace {

// PTX leaves the layout open.
struct State {
  uint32_t expected : 20;
  uint32_t phase : 1;
  uint32_t unused : 11;
  uint32_t pending : 20;
  int32_t unused2 : 12;
};
static_assert(sizeof(State) == 8);
constexpr uint32_t kCountMax = (1u << 20) - 1;

enum class Result : uint32_t { kNone, kState, kPredicate };

// Op: a the address register, b its displacement (constant of 8 bytes), c a count, a state or a
// parity, dst the result.
uint64_t AddressOf(Warp* warp, const Op& op, int lane) {
  uint64_t address = Lanes<uint64_t>(warp, op.b)[lane];
  if (op.a != kNoRegister) {
    address += (op.extra & kNarrowAddress) != 0 ? Lanes<uint32_t>(warp, op.a)[lane]
                                                : Lanes<uint64_t>(warp, op.a)[lane];
  }
  if ((op.extra & kNarrowAddress) != 0) address = static_cast<uint32_t>(address);
  if (address >= kSharedWindow) SplitGeneric(&address);
  return address;
}

// The object of a lane, nullptr when a fault was reported.
std::byte* Object(Warp* warp, const Op& op, int lane, AccessKind kind) {
  return PrepareLane(warp, op, lane, Space::kShared, AddressOf(warp, op, lane), sizeof(State), kind,
                     nullptr);
}

State Load(const std::byte* at) {
  State state;
  std::memcpy(&state, at, sizeof(state));
  return state;
}

// What the warp knows becomes known to whoever sees the phase complete.
void Release(Warp* warp, uint32_t address) {
  std::vector<uint32_t>& known = warp->block->mbarrier_known()[address];
  const std::vector<uint32_t>& own = StateOf(warp)->known;
  known.resize(own.size(), 0);
  for (size_t i = 0; i < own.size(); ++i) known[i] = std::max(known[i], own[i]);
}

void Acquire(Warp* warp, uint32_t address) {
  const auto found = warp->block->mbarrier_known().find(address);
  if (found != warp->block->mbarrier_known().end())
    warp->block->JoinKnown(StateOf(warp), found->second);
}

void Init(Warp* warp, const Op& op, uint32_t mask) {
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const uint32_t count = Lanes<uint32_t>(warp, op.c)[lane];
    if (count == 0 || count > kCountMax) {
      ReportFault(warp, op, lane, FaultKind::kUnsupported,
                  absl::StrCat("an mbarrier waits for 1 to ", kCountMax, " arrivals, not ", count));
      return;
    }
    std::byte* const at = Object(warp, op, lane, AccessKind::kStore);
    if (at == nullptr) return;
    const State state{count, 0, 0, count, 0};
    std::memcpy(at, &state, sizeof(state));
  }
}

void Invalidate(Warp* warp, const Op& op, uint32_t mask) {
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    if (Object(warp, op, std::countr_zero(rest), AccessKind::kAtomic) == nullptr) return;
  }
}

bool ArriveLane(Warp* warp, const Op& op, int lane, uint32_t count, uint64_t* before) {
  std::byte* const at = Object(warp, op, lane, AccessKind::kAtomic);
  if (at == nullptr) return false;
  State state = Load(at);
  std::memcpy(before, &state, sizeof(state));
  if (count > state.pending) {
    ReportFault(warp, op, lane, FaultKind::kUnsupported,
                absl::StrCat(count, " arrivals at an mbarrier that waits for ",
                             static_cast<uint32_t>(state.pending), " more"));
    return false;
  }
  state.pending -= count;
  if (state.pending == 0) {
    state.phase ^= 1;
    state.pending = state.expected;
  }
  std::memcpy(at, &state, sizeof(state));
  return true;
}

void Arrive(Warp* warp, const Op& op, uint32_t mask) {
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const uint32_t count = op.c == kNoRegister ? 1 : Lanes<uint32_t>(warp, op.c)[lane];
    uint64_t before = 0;
    Release(warp, static_cast<uint32_t>(AddressOf(warp, op, lane)));
    if (!ArriveLane(warp, op, lane, count, &before)) return;
    if (op.dst != kNoRegister) Lanes<uint64_t>(warp, op.dst)[lane] = before;
  }
  warp->block->StepClock(StateOf(warp));
}

// Whether the phase that the state (or parity) names is over.
void TestWait(Warp* warp, const Op& op, uint32_t mask) {
  const bool parity = op.data != 0;
  uint32_t done = 0;
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::byte* const at = Object(warp, op, lane, AccessKind::kAtomic);
    if (at == nullptr) return;
    uint32_t waited = 0;
    if (parity) {
      waited = Lanes<uint32_t>(warp, op.c)[lane] & 1;
    } else {
      State old;
      std::memcpy(&old, &Lanes<uint64_t>(warp, op.c)[lane], sizeof(old));
      waited = old.phase;
    }
    if (Load(at).phase == waited) continue;
    done |= 1u << lane;
    Acquire(warp, static_cast<uint32_t>(AddressOf(warp, op, lane)));
  }
  SetPredicate(warp, op.dst, mask, done);
}

void PendingCount(Warp* warp, const Op& op, uint32_t mask) {
  EachLane(mask, [&](int lane) {
    State state;
    std::memcpy(&state, &Lanes<uint64_t>(warp, op.a)[lane], sizeof(state));
    Lanes<uint32_t>(warp, op.dst)[lane] = state.pending;
  });
}

absl::Status DecodeWait(const Instruction& instruction, Modifiers* modifiers, Decoder* decoder,
                        Op* op) {
  const bool parity = modifiers->Take("parity");
  while (modifiers->Take("acquire") || modifiers->Take("relaxed") || modifiers->Take("cta") ||
         modifiers->Take("shared") || modifiers->Take("shared::cta") || modifiers->Take("b64")) {
  }
  ASSAY_RETURN_IF_ERROR(modifiers->Finish());
  ASSAY_RETURN_IF_ERROR(
      CheckOperandCount(instruction, 3, 4));  // the fourth: a time limit, which is a hint
  ASSAY_ASSIGN_OR_RETURN(op->dst, decoder->PredicateDestination(instruction.operands[0]));
  ASSAY_RETURN_IF_ERROR(DecodeMbarrierAddress(instruction.operands[1], decoder, op));
  ASSAY_ASSIGN_OR_RETURN(
      op->c, decoder->Source(instruction.operands[2], parity ? Type::kU32 : Type::kB64));
  op->data = parity ? 1 : 0;
  op->handler = TestWait;
  return absl::OkStatus();
}

absl::Status DecodeArrive(const Instruction& instruction, Modifiers* modifiers, Decoder* decoder,
                          Op* op) {
  modifiers->Take("noComplete");  // the caller promises it; a completion is harmless
  while (modifiers->Take("release") || modifiers->Take("relaxed") || modifiers->Take("cta") ||
         modifiers->Take("shared") || modifiers->Take("shared::cta") || modifiers->Take("b64")) {
  }
  ASSAY_RETURN_IF_ERROR(modifiers->Finish());
  ASSAY_RETURN_IF_ERROR(CheckOperandCount(instruction, 2, 3));
  if (instruction.operands[0].kind != Operand::Kind::kSink) {
    ASSAY_ASSIGN_OR_RETURN(op->dst, decoder->Destination(instruction.operands[0], Type::kB64));
  }
  ASSAY_RETURN_IF_ERROR(DecodeMbarrierAddress(instruction.operands[1], decoder, op));
  if (instruction.operands.size() == 3) {
    ASSAY_ASSIGN_OR_RETURN(op->c, decoder->Source(instruction.operands[2], Type::kU32));
  }
  op->handler = Arrive;
  return absl::OkStatus();
}

absl::Status DecodeMbarrier(const Instruction& instruction, Decoder* decoder, Op* op) {
  Modifiers modifiers(instruction);
  decoder->info()->op_class = OpClass::kControl;
  if (modifiers.Take("arrive")) return DecodeArrive(instruction, &modifiers, decoder, op);
  if (modifiers.Take("test_wait") || modifiers.Take("try_wait"))
    return DecodeWait(instruction, &modifiers, decoder, op);
  if (modifiers.Take("pending_count")) {
    modifiers.Take("b64");
    ASSAY_RETURN_IF_ERROR(modifiers.Finish());
    ASSAY_RETURN_IF_ERROR(CheckOperandCount(instruction, 2, 2));
    ASSAY_ASSIGN_OR_RETURN(op->dst, decoder->Destination(instruction.operands[0], Type::kU32));
    ASSAY_ASSIGN_OR_RETURN(op->a, decoder->Source(instruction.operands[1], Type::kB64));
    op->handler = PendingCount;
    return absl::OkStatus();
  }
  const bool init = modifiers.Take("init");
  if (!init && !modifiers.Take("inval")) {
    return absl::UnimplementedError(absl::StrCat("mbarrier.", std::string(modifiers.current())));
  }
  if (!modifiers.Take("shared")) modifiers.Take("shared::cta");
  modifiers.Take("b64");
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  ASSAY_RETURN_IF_ERROR(CheckOperandCount(instruction, init ? 2 : 1, init ? 2 : 1));
  ASSAY_RETURN_IF_ERROR(DecodeMbarrierAddress(instruction.operands[0], decoder, op));
  if (init) {
    ASSAY_ASSIGN_OR_RETURN(op->c, decoder->Source(instruction.operands[1], Type::kU32));
  }
  op->handler = init ? Init : Invalidate;
  return absl::OkStatus();
}

}  // namespace

absl::Status DecodeMbarrierAddress(const Operand& operand, Decoder* decoder, Op* op) {
  bool narrow = false;
  int64_t offset = 0;
  ASSAY_RETURN_IF_ERROR(decoder->Address(operand, &op->a, &offset, &narrow));
  op->b = decoder->Constant(static_cast<uint64_t>(offset), 8);
  if (narrow) op->extra |= kNarrowAddress;
  return absl::OkStatus();
}

void MbarrierArriveAfterCopy(Warp* warp, const Op& op, uint32_t mask) {
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    Release(warp, static_cast<uint32_t>(AddressOf(warp, op, lane)));
    uint64_t before = 0;
    if (op.data != 0 && !ArriveLane(warp, op, lane, 1, &before)) return;
  }
  warp->block->StepClock(StateOf(warp));
}

void AddMbarrierOps(OpTable* table) { table->Add("mbarrier", DecodeMbarrier); }

}  // namespace assay::emulator
