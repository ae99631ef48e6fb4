// Exchange between the lanes of a warp: shfl, vote, activemask, elect; and nanosleep.
#include <algorithm>
#include <bit>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "emulator/execute/warp.h"
#include "emulator/ops/ops.h"
#include "emulator/ops/warp_party.h"
#include "emulator/ops/warp_reduce.h"

namespace assay::emulator {
namespace {

// What a lane gets from one that is not there.
constexpr uint32_t kPoison = 0xffffdeadu;

enum class Shuffle { kUp, kDown, kButterfly, kIndex };

// The lane from which `lane` reads, and whether that is in its segment; else it keeps its own
// value.
template <Shuffle kMode>
int SourceLane(int lane, uint32_t b, uint32_t c, bool* in_range) {
  const int offset = static_cast<int>(b & 31);
  const int segment = static_cast<int>(c >> 8 & 31);
  const int limit = (lane & segment) | (static_cast<int>(c & 31) & ~segment);
  int source = lane;
  if constexpr (kMode == Shuffle::kUp) {
    source = lane - offset;
    *in_range = source >= limit;
    return source;
  }
  if constexpr (kMode == Shuffle::kDown) source = lane + offset;
  if constexpr (kMode == Shuffle::kButterfly) source = lane ^ offset;
  if constexpr (kMode == Shuffle::kIndex) source = (lane & segment) | (offset & ~segment);
  *in_range = source <= limit;
  return source;
}

void ReportAbsentSource(Warp* warp, const Op& op, int lane, int source, uint32_t members) {
  if (CountKnownFault(warp, op, FaultKind::kAbsentLane)) return;
  const std::string_view why = (members >> source & 1) == 0 ? "is not named in its member mask"
                               : (warp->live >> source & 1) == 0
                                   ? "has exited or is beyond the end of the block"
                                   : "does not execute this with it";
  ReportFault(warp, op, lane, FaultKind::kAbsentLane,
              absl::StrCat("lane ", lane, " reads from lane ", source, ", which ", std::string(why),
                           "; the member mask is 0x", absl::Hex(members)));
}

// Op: b and c as in PTX, d the member mask, data the offset of the predicate.
template <Shuffle kMode>
void ShuffleHandler(Warp* warp, const Op& op, uint32_t mask) {
  EachConvergedParty(warp, op, mask, op.d, [&](uint32_t party, uint32_t members) {
    uint32_t values[kLanes];
    std::copy_n(Lanes<uint32_t>(warp, op.a), kLanes, values);
    const uint32_t* const b = Lanes<uint32_t>(warp, op.b);
    const uint32_t* const c = Lanes<uint32_t>(warp, op.c);
    uint32_t results[kLanes];
    uint32_t in_range = 0;
    uint32_t absent = 0;
    for (int lane = 0; lane < kLanes; ++lane) {
      bool found = false;
      const int source = SourceLane<kMode>(lane, b[lane], c[lane], &found);
      const int from = found ? source & 31 : lane;
      results[lane] = values[from];
      in_range |= uint32_t{found} << lane;
      absent |= (~party >> from & 1) << lane;
    }
    absent &= party;
    for (uint32_t rest = absent; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      bool found = false;
      ReportAbsentSource(warp, op, lane, SourceLane<kMode>(lane, b[lane], c[lane], &found),
                         members);
      results[lane] = kPoison;
    }
    uint32_t* const to = Lanes<uint32_t>(warp, op.dst);
    EachLane(party, [&](int lane) { to[lane] = results[lane]; });
    if (op.data != kNoRegister) {
      SetPredicate(warp, static_cast<uint32_t>(op.data), party, in_range);
    }
  });
}

absl::Status DecodeShuffle(const Instruction& instruction, Decoder* decoder, Op* op) {
  Modifiers modifiers(instruction);
  const bool sync = modifiers.Take("sync");
  if (modifiers.Take("up")) {
    op->handler = &ShuffleHandler<Shuffle::kUp>;
  } else if (modifiers.Take("down")) {
    op->handler = &ShuffleHandler<Shuffle::kDown>;
  } else if (modifiers.Take("bfly")) {
    op->handler = &ShuffleHandler<Shuffle::kButterfly>;
  } else if (modifiers.Take("idx")) {
    op->handler = &ShuffleHandler<Shuffle::kIndex>;
  } else {
    return absl::UnimplementedError("a shuffle that is not .up, .down, .bfly or .idx");
  }
  if (!modifiers.Take("b32")) return absl::UnimplementedError("a shuffle of other than .b32");
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  const size_t count = sync ? 5 : 4;
  ASSAY_RETURN_IF_ERROR(CheckOperandCount(instruction, count, count));
  const auto& operands = instruction.operands;
  ASSAY_ASSIGN_OR_RETURN(op->dst, decoder->Destination(operands[0], Type::kB32));
  ASSAY_ASSIGN_OR_RETURN(op->data, decoder->PairPredicate(operands[0]));
  ASSAY_ASSIGN_OR_RETURN(op->a, decoder->Source(operands[1], Type::kB32));
  ASSAY_ASSIGN_OR_RETURN(op->b, decoder->Source(operands[2], Type::kB32));
  ASSAY_ASSIGN_OR_RETURN(op->c, decoder->Source(operands[3], Type::kB32));
  if (sync) {
    ASSAY_ASSIGN_OR_RETURN(op->d, decoder->Source(operands[4], Type::kB32));
  }
  return absl::OkStatus();
}

enum class Vote { kAll, kAny, kUniform, kBallot };

constexpr uint32_t kNegated = 1;  // Op::extra

// Op: a the predicate, b the member mask.
template <Vote kMode>
void VoteHandler(Warp* warp, const Op& op, uint32_t mask) {
  EachConvergedParty(warp, op, mask, op.b, [&](uint32_t party, uint32_t) {
    const uint32_t flip = (op.extra & kNegated) != 0 ? ~0u : 0u;
    const uint32_t set = (PredicateLanes(warp, op.a) ^ flip) & party;
    if constexpr (kMode == Vote::kBallot) {
      uint32_t* const to = Lanes<uint32_t>(warp, op.dst);
      EachLane(party, [=](int lane) { to[lane] = set; });
      return;
    }
    bool result = set == party;
    if (kMode == Vote::kAny) result = set != 0;
    if (kMode == Vote::kUniform) result = set == party || set == 0;
    SetPredicate(warp, op.dst, party, result ? ~0u : 0u);
  });
}

absl::Status DecodeVote(const Instruction& instruction, Decoder* decoder, Op* op) {
  Modifiers modifiers(instruction);
  const bool sync = modifiers.Take("sync");
  const bool ballot = modifiers.Take("ballot");
  if (ballot) {
    op->handler = &VoteHandler<Vote::kBallot>;
  } else if (modifiers.Take("all")) {
    op->handler = &VoteHandler<Vote::kAll>;
  } else if (modifiers.Take("any")) {
    op->handler = &VoteHandler<Vote::kAny>;
  } else if (modifiers.Take("uni")) {
    op->handler = &VoteHandler<Vote::kUniform>;
  } else {
    return absl::UnimplementedError("a vote that is not .all, .any, .uni or .ballot");
  }
  if (!modifiers.Take(ballot ? "b32" : "pred")) {
    return absl::UnimplementedError("a vote with another type than .pred, or .b32 of .ballot");
  }
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  const size_t count = sync ? 3 : 2;
  ASSAY_RETURN_IF_ERROR(CheckOperandCount(instruction, count, count));
  const auto& operands = instruction.operands;
  if (ballot) {
    ASSAY_ASSIGN_OR_RETURN(op->dst, decoder->Destination(operands[0], Type::kB32));
  } else {
    ASSAY_ASSIGN_OR_RETURN(op->dst, decoder->PredicateDestination(operands[0]));
  }
  bool negated = false;
  ASSAY_ASSIGN_OR_RETURN(op->a, decoder->Predicate(operands[1], &negated));
  if (negated) op->extra |= kNegated;
  if (sync) {
    ASSAY_ASSIGN_OR_RETURN(op->b, decoder->Source(operands[2], Type::kB32));
  }
  return absl::OkStatus();
}

void ActiveMaskHandler(Warp* warp, const Op& op, uint32_t mask) {
  uint32_t* const to = Lanes<uint32_t>(warp, op.dst);
  EachLane(mask, [=](int lane) { to[lane] = mask; });
}

absl::Status DecodeActiveMask(const Instruction& instruction, Decoder* decoder, Op* op) {
  Modifiers modifiers(instruction);
  if (!modifiers.Take("b32")) return absl::UnimplementedError("activemask of other than .b32");
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  ASSAY_RETURN_IF_ERROR(CheckOperandCount(instruction, 1, 1));
  ASSAY_ASSIGN_OR_RETURN(op->dst, decoder->Destination(instruction.operands[0], Type::kB32));
  op->handler = &ActiveMaskHandler;
  return absl::OkStatus();
}

// Op: b the member mask, data the offset of the predicate. The leader is the lowest lane.
void ElectHandler(Warp* warp, const Op& op, uint32_t mask) {
  EachConvergedParty(warp, op, mask, op.b, [&](uint32_t party, uint32_t) {
    const auto leader = static_cast<uint32_t>(std::countr_zero(party));
    uint32_t* const to = Lanes<uint32_t>(warp, op.dst);
    EachLane(party, [=](int lane) { to[lane] = leader; });
    SetPredicate(warp, static_cast<uint32_t>(op.data), party, 1u << leader);
  });
}

absl::Status DecodeElect(const Instruction& instruction, Decoder* decoder, Op* op) {
  Modifiers modifiers(instruction);
  if (!modifiers.Take("sync")) return absl::UnimplementedError("elect without .sync");
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  ASSAY_RETURN_IF_ERROR(CheckOperandCount(instruction, 2, 2));
  ASSAY_ASSIGN_OR_RETURN(op->dst, decoder->Destination(instruction.operands[0], Type::kB32));
  ASSAY_ASSIGN_OR_RETURN(op->data, decoder->PairPredicate(instruction.operands[0]));
  if (op->data == kNoRegister) {
    return absl::InvalidArgumentError("elect needs a predicate destination: d|p");
  }
  ASSAY_ASSIGN_OR_RETURN(op->b, decoder->Source(instruction.operands[1], Type::kB32));
  op->handler = &ElectHandler;
  return absl::OkStatus();
}

void NothingHandler(Warp* warp, const Op& op, uint32_t mask) {}

absl::Status DecodeNanosleep(const Instruction& instruction, Decoder* decoder, Op* op) {
  Modifiers modifiers(instruction);
  if (!modifiers.Take("u32")) return absl::UnimplementedError("nanosleep of other than .u32");
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  ASSAY_RETURN_IF_ERROR(CheckOperandCount(instruction, 1, 1));
  ASSAY_ASSIGN_OR_RETURN(op->a, decoder->Source(instruction.operands[0], Type::kU32));
  op->handler = &NothingHandler;
  return absl::OkStatus();
}

}  // namespace

void AddWarpOps(OpTable* table) {
  table->Add("shfl", &DecodeShuffle);
  table->Add("vote", &DecodeVote);
  table->Add("activemask", &DecodeActiveMask);
  table->Add("elect", &DecodeElect);
  table->Add("nanosleep", &DecodeNanosleep);
  table->Add("match", &DecodeMatch);
  table->Add("redux", &DecodeRedux);
}

}  // namespace assay::emulator
