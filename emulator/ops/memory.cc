// ld, ldu and st, prefetches and cache hints.
#include <cstring>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "emulator/execute/block.h"
#include "emulator/execute/memory_access.h"
#include "emulator/execute/race_report.h"
#include "emulator/execute/warp.h"
#include "emulator/ops/memory_decode.h"
#include "emulator/ops/memory_lanes.h"
#include "emulator/ops/ops.h"

namespace assay::emulator {
namespace {

// Op::extra beyond kNarrowAddress.
constexpr uint32_t kVolatile = 2;
constexpr uint32_t kAcquireOrRelease = 4;
constexpr uint32_t kSpaceShift = 4;   // four bits
constexpr uint32_t kVectorShift = 8;  // four bits
constexpr uint32_t kSignShift = 12;

Space SpaceOf(const Op& op) { return static_cast<Space>(op.extra >> kSpaceShift & 15); }
uint32_t VectorOf(const Op& op) { return op.extra >> kVectorShift & 15; }

bool Prepare(Space space, Warp* warp, const Op& op, uint32_t mask, const uint64_t* addresses,
             uint32_t bytes, AccessKind kind, WarpAccess* access) {
  switch (space) {
    case Space::kGlobal:
    case Space::kConst:
      return PrepareGlobal(warp, op, mask, addresses, bytes, kind, access);
    case Space::kShared:
      return PrepareShared(warp, op, mask, addresses, bytes, kind, access);
    default:
      return false;
  }
}

// The space of a generic access whose lanes all agree, with the addresses there; kGeneric when they
// do not.
Space Unify(Space space, uint32_t mask, uint64_t* addresses) {
  if (space != Space::kGeneric) return space;
  std::optional<Space> all;
  alignas(64) uint64_t split[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    split[lane] = addresses[lane];
    if ((mask >> lane & 1) == 0) continue;
    const Space here = SplitGeneric(&split[lane]);
    if (all.value_or(here) != here) return Space::kGeneric;
    all = here;
  }
  std::memcpy(addresses, split, sizeof(split));
  return all.value_or(Space::kGlobal);
}

// A value of W bytes in a register of D.
template <typename W, typename D>
void ScatterToRegister(Warp* warp, uint32_t mask, uint32_t reg, const std::byte* packed,
                       uint32_t stride) {
  D* const lanes = Lanes<D>(warp, reg);
  EachLane(mask, [&](int lane) {
    W value;
    std::memcpy(&value, packed + static_cast<size_t>(lane) * stride, sizeof(W));
    lanes[lane] = static_cast<D>(value);
  });
}

template <typename W, typename D>
void GatherFromRegister(Warp* warp, uint32_t mask, uint32_t reg, std::byte* packed,
                        uint32_t stride) {
  const D* const lanes = Lanes<D>(warp, reg);
  EachLane(mask, [&](int lane) {
    const auto value = static_cast<W>(lanes[lane]);
    std::memcpy(packed + static_cast<size_t>(lane) * stride, &value, sizeof(W));
  });
}

void AcquireLanes(Warp* warp, uint32_t mask, Space space, const uint64_t* addresses) {
  if (warp->block->launch().sync.empty() && warp->block->shared_sync().empty()) return;
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    uint64_t address = addresses[std::countr_zero(rest)];
    const Space where = space == Space::kGeneric ? SplitGeneric(&address) : space;
    AcquireAt(warp, where, address);
  }
}

// Value number `part` of each lane's vector, from memory that passed every check.
template <typename W, typename D>
void TakeFromMemory(Warp* warp, uint32_t mask, uint32_t reg, const WarpAccess& access, size_t part,
                    bool is_vector) {
  D* const lanes = Lanes<D>(warp, reg);
  const size_t skip = part * sizeof(W);
  if (access.pattern == Pattern::kBroadcast) {
    const auto value = static_cast<D>(ReadAs<W>(access.at(std::countr_zero(mask)) + skip));
    EachLane(mask, [=](int lane) { lanes[lane] = value; });
  } else if (access.pattern == Pattern::kConsecutive && !is_vector) {
    const std::byte* const from = access.at(0);
    for (int lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = static_cast<D>(ReadAs<W>(from + static_cast<size_t>(lane) * sizeof(W)));
    }
  } else {
    EachLane(mask,
             [&](int lane) { lanes[lane] = static_cast<D>(ReadAs<W>(access.at(lane) + skip)); });
  }
}

template <typename W, typename D>
void Load(Warp* warp, const Op& op, uint32_t mask) {
  const uint32_t vector = VectorOf(op);
  const auto bytes = static_cast<uint32_t>(sizeof(W) * vector);
  const uint32_t* const registers = vector == 1 ? &op.dst : &warp->lists[op.list];
  const AccessKind kind =
      (op.extra & kVolatile) != 0 ? AccessKind::kVolatileLoad : AccessKind::kLoad;
  RepeatedAccess again;
  if (kind == AccessKind::kLoad &&
      PrepareRepeatedLoad(warp, op, mask, SpaceOf(op), bytes, &again)) {
    return TakeLanes<W, D>(warp, mask, registers, vector, again);
  }
  alignas(64) uint64_t addresses[kLanes];
  ComputeAddresses(warp, op, addresses);
  const Space space = Unify(SpaceOf(op), mask, addresses);
  WarpAccess access;
  if (Prepare(space, warp, op, mask, addresses, bytes, kind, &access)) {
    for (uint32_t i = 0; i < vector; ++i)
      TakeFromMemory<W, D>(warp, mask, registers[i], access, i, vector > 1);
  } else {
    alignas(64) std::byte packed[kLanes * 32];
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      const std::byte* const from =
          PrepareLane(warp, op, lane, space, addresses[lane], bytes, kind, nullptr);
      if (from == nullptr) return;
      std::memcpy(packed + static_cast<size_t>(lane) * bytes, from, bytes);
    }
    for (uint32_t i = 0; i < vector; ++i)
      ScatterToRegister<W, D>(warp, mask, registers[i], packed + i * sizeof(W), bytes);
  }
  if (kind == AccessKind::kVolatileLoad) AcquireLanes(warp, mask, space, addresses);
}

bool WriteLanes(Warp* warp, const Op& op, uint32_t mask, uint32_t bytes, AccessKind kind,
                const std::byte* packed) {
  alignas(64) uint64_t addresses[kLanes];
  ComputeAddresses(warp, op, addresses);
  const Space space = Unify(SpaceOf(op), mask, addresses);
  if (kind == AccessKind::kVolatileStore &&
      ((op.extra & kAcquireOrRelease) != 0 || StateOf(warp)->fenced)) {
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
      uint64_t address = addresses[std::countr_zero(rest)];
      const Space where = space == Space::kGeneric ? SplitGeneric(&address) : space;
      ReleaseAt(warp, where, address);
    }
  }
  WarpAccess access;
  access.values = packed;
  if (Prepare(space, warp, op, mask, addresses, bytes, kind, &access)) {
    if (access.pattern == Pattern::kConsecutive) {
      std::memcpy(access.at(0), packed, size_t{bytes} * kLanes);
      return true;
    }
    if (bytes == 4) {
      EachLane(mask,
               [&](int l) { std::memcpy(access.at(l), packed + static_cast<size_t>(l) * 4, 4); });
    } else {
      EachLane(mask, [&](int l) {
        std::memcpy(access.at(l), packed + static_cast<size_t>(l) * bytes, bytes);
      });
    }
    return true;
  }
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::byte* const value = packed + static_cast<size_t>(lane) * bytes;
    PlaceHold hold;
    HoldPlaces(warp, space, 1u << lane, addresses, &hold);
    std::byte* const to = PrepareLane(warp, op, lane, space, addresses[lane], bytes, kind, value);
    if (to == nullptr) return false;
    std::memcpy(to, value, bytes);
  }
  return true;
}

template <typename W, typename D>
void Store(Warp* warp, const Op& op, uint32_t mask) {
  const uint32_t vector = VectorOf(op);
  const auto bytes = static_cast<uint32_t>(sizeof(W) * vector);
  const uint32_t* const registers = vector == 1 ? &op.dst : &warp->lists[op.list];
  const AccessKind kind =
      (op.extra & kVolatile) != 0 ? AccessKind::kVolatileStore : AccessKind::kStore;
  RepeatedAccess again;
  PlaceHold hold;
  if (kind == AccessKind::kStore &&
      PrepareRepeatedStore(warp, op, mask, SpaceOf(op), bytes, &again, &hold)) {
    return PutLanes<W, D>(warp, mask, registers, vector, again);
  }
  alignas(64) std::byte packed[kLanes * 32];
  for (uint32_t i = 0; i < vector; ++i)
    GatherFromRegister<W, D>(warp, mask, registers[i], packed + i * sizeof(W), bytes);
  WriteLanes(warp, op, mask, bytes, kind, packed);
}

// Parameters of the kernel at a fixed place: the same for all lanes, and checked when it was
// decoded.
template <typename W, typename D>
void LoadParameter(Warp* warp, const Op& op, uint32_t mask) {
  const std::byte* const from = warp->block->launch().arguments.data() + op.data;
  const uint32_t vector = VectorOf(op);
  for (uint32_t i = 0; i < vector; ++i) {
    W value;
    std::memcpy(&value, from + i * sizeof(W), sizeof(W));
    D* const lanes = Lanes<D>(warp, vector == 1 ? op.dst : warp->lists[op.list + i]);
    EachLane(mask, [&](int lane) { lanes[lane] = static_cast<D>(value); });
  }
}

// Param space of calls: op.b is the region's offset in the register file, op.c its bytes a lane,
// op.data the place in it.
template <typename W, typename D>
void LoadRegion(Warp* warp, const Op& op, uint32_t mask) {
  const std::byte* const from = warp->registers + op.b + op.data;
  const uint32_t vector = VectorOf(op);
  for (uint32_t i = 0; i < vector; ++i) {
    const uint32_t reg = vector == 1 ? op.dst : warp->lists[op.list + i];
    ScatterToRegister<W, D>(warp, mask, reg, from + i * sizeof(W), op.c);
  }
}

template <typename W, typename D>
void StoreRegion(Warp* warp, const Op& op, uint32_t mask) {
  std::byte* const to = warp->registers + op.b + op.data;
  const uint32_t vector = VectorOf(op);
  for (uint32_t i = 0; i < vector; ++i) {
    const uint32_t reg = vector == 1 ? op.dst : warp->lists[op.list + i];
    GatherFromRegister<W, D>(warp, mask, reg, to + i * sizeof(W), op.c);
  }
}

enum class Action { kLoad, kStore, kLoadParameter, kLoadRegion, kStoreRegion };

template <typename W, typename D>
Handler PickAction(Action action) {
  switch (action) {
    case Action::kLoad:
      return Load<W, D>;
    case Action::kStore:
      return Store<W, D>;
    case Action::kLoadParameter:
      return LoadParameter<W, D>;
    case Action::kLoadRegion:
      return LoadRegion<W, D>;
    case Action::kStoreRegion:
      return StoreRegion<W, D>;
  }
  return nullptr;
}

// By the value's bytes, its sign and the register's bytes. nullptr: there is no such form.
Handler PickHandler(Action action, int bytes, bool is_signed, int width) {
  if (bytes == 1 && width == 2)
    return is_signed ? PickAction<int8_t, int16_t>(action) : PickAction<uint8_t, uint16_t>(action);
  if (bytes == 1 && width == 4)
    return is_signed ? PickAction<int8_t, int32_t>(action) : PickAction<uint8_t, uint32_t>(action);
  if (bytes == 1 && width == 8)
    return is_signed ? PickAction<int8_t, int64_t>(action) : PickAction<uint8_t, uint64_t>(action);
  if (bytes == 2 && width == 2) return PickAction<uint16_t, uint16_t>(action);
  if (bytes == 2 && width == 4)
    return is_signed ? PickAction<int16_t, int32_t>(action)
                     : PickAction<uint16_t, uint32_t>(action);
  if (bytes == 2 && width == 8)
    return is_signed ? PickAction<int16_t, int64_t>(action)
                     : PickAction<uint16_t, uint64_t>(action);
  if (bytes == 4 && width == 4) return PickAction<uint32_t, uint32_t>(action);
  if (bytes == 4 && width == 8)
    return is_signed ? PickAction<int32_t, int64_t>(action)
                     : PickAction<uint32_t, uint64_t>(action);
  if (bytes == 8 && width == 8) return PickAction<uint64_t, uint64_t>(action);
  if (bytes == 16 && width == 16) return PickAction<unsigned __int128, unsigned __int128>(action);
  return nullptr;
}

// The register operands: one, or those of a vector, all of one width.
absl::Status DecodeValues(const Operand& operand, const MemoryModifiers& m, bool load,
                          Decoder* decoder, Op* op, int* width) {
  const auto one = [&](const Operand& o, int* w) {
    return load ? decoder->DestinationAnyWidth(o, m.type, w)
                : decoder->SourceAnyWidth(o, m.type, w);
  };
  if (m.vector == 1) {
    ASSAY_ASSIGN_OR_RETURN(op->dst, one(operand, width));
    return absl::OkStatus();
  }
  if (operand.kind != Operand::Kind::kVector ||
      operand.elements.size() != static_cast<size_t>(m.vector)) {
    return absl::InvalidArgumentError(absl::StrCat("expects a vector of ", m.vector, " registers"));
  }
  std::vector<uint32_t> registers;
  for (const Operand& element : operand.elements) {
    int w = 0;
    ASSAY_ASSIGN_OR_RETURN(const uint32_t reg, one(element, &w));
    if (!registers.empty() && w != *width && element.kind == Operand::Kind::kRegister) {
      return absl::InvalidArgumentError("has registers of different widths in one vector");
    }
    *width = w;
    registers.push_back(reg);
  }
  op->list = decoder->AddList(registers);
  op->list_size = static_cast<uint16_t>(registers.size());
  return absl::OkStatus();
}

absl::Status DecodeAccess(const Instruction& instruction, bool load, Decoder* decoder, Op* op) {
  ASSAY_RETURN_IF_ERROR(CheckOperandCount(instruction, 2, 3));  // the third: a cache policy
  ASSAY_ASSIGN_OR_RETURN(const MemoryModifiers m, DecodeMemoryModifiers(instruction));
  const Operand& value = instruction.operands[load ? 0 : 1];
  const Operand& address = instruction.operands[load ? 1 : 0];
  const int bytes = TypeBytes(m.type);
  if (bytes * m.vector > 32)
    return absl::InvalidArgumentError("accesses more than 32 bytes a thread");
  int width = 0;
  ASSAY_RETURN_IF_ERROR(DecodeValues(value, m, load, decoder, op, &width));
  decoder->info()->op_class = OpClass::kMemory;
  op->extra = static_cast<uint32_t>(m.space) << kSpaceShift |
              static_cast<uint32_t>(m.vector) << kVectorShift | (m.is_volatile ? kVolatile : 0) |
              (m.orders ? kAcquireOrRelease : 0);
  Action action = load ? Action::kLoad : Action::kStore;
  std::optional<ParamPlace> place;
  if (m.space == Space::kParam && !address.symbol.empty()) {
    ASSAY_ASSIGN_OR_RETURN(place, decoder->FindParam(address.symbol));
    const int64_t offset = address.offset;
    if (offset < 0 || offset > place->bytes - bytes * m.vector) {
      return absl::InvalidArgumentError(absl::StrCat("accesses ", bytes * m.vector, " bytes at ",
                                                     offset, " of ", address.symbol, ", which has ",
                                                     place->bytes));
    }
    if (place->is_kernel_parameter && !load)
      return absl::InvalidArgumentError("writes a parameter of the kernel");
    action = place->is_kernel_parameter ? Action::kLoadParameter
             : load                     ? Action::kLoadRegion
                                        : Action::kStoreRegion;
    op->b = place->offset;
    op->c = static_cast<uint32_t>(place->bytes);
    op->data = static_cast<uint64_t>(offset) + (place->is_kernel_parameter ? place->offset : 0);
  } else {
    bool narrow = false;
    int64_t offset = 0;
    ASSAY_RETURN_IF_ERROR(decoder->Address(address, &op->a, &offset, &narrow));
    op->data = static_cast<uint64_t>(offset);
    if (narrow) op->extra |= kNarrowAddress;
  }
  op->handler = PickHandler(action, bytes, IsSigned(m.type), width);
  if (op->handler == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot keep ", bytes, " bytes in a register of ", width));
  }
  return absl::OkStatus();
}

absl::Status DecodeLoad(const Instruction& i, Decoder* d, Op* op) {
  return DecodeAccess(i, true, d, op);
}
absl::Status DecodeStore(const Instruction& i, Decoder* d, Op* op) {
  return DecodeAccess(i, false, d, op);
}

void Nothing(Warp* warp, const Op& op, uint32_t mask) {}

// Hints that change no value.
absl::Status DecodeHint(const Instruction& instruction, Decoder* decoder, Op* op) {
  op->handler = Nothing;
  return absl::OkStatus();
}

// A policy is a number that only hints are given.
void MakePolicy(Warp* warp, const Op& op, uint32_t mask) {
  uint64_t* const lanes = Lanes<uint64_t>(warp, op.dst);
  EachLane(mask, [&](int lane) { lanes[lane] = 0; });
}
absl::Status DecodeCreatePolicy(const Instruction& instruction, Decoder* decoder, Op* op) {
  ASSAY_RETURN_IF_ERROR(CheckOperandCount(instruction, 1, 4));
  ASSAY_ASSIGN_OR_RETURN(op->dst, decoder->Destination(instruction.operands[0], Type::kB64));
  op->handler = MakePolicy;
  return absl::OkStatus();
}

}  // namespace

void AddMemoryOps(OpTable* table) {
  table->Add("ld", DecodeLoad);
  table->Add("ldu", DecodeLoad);
  table->Add("st", DecodeStore);
  table->Add("prefetch", DecodeHint);
  table->Add("prefetchu", DecodeHint);
  table->Add("applypriority", DecodeHint);
  table->Add("discard", DecodeHint);
  table->Add("createpolicy", DecodeCreatePolicy);
}

}  // namespace assay::emulator
