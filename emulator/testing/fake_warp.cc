#include "emulator/testing/fake_warp.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "emulator/execute/memory_access.h"
#include "emulator/execute/warp.h"
#include "emulator/memory/device_memory.h"
#include "emulator/ops/ops.h"
#include "emulator/ops/warp_barrier.h"

namespace assay::emulator {
namespace {

constexpr size_t kRegisterBytes = size_t{1} << 17;
constexpr size_t kMemoryBytes = size_t{1} << 16;

FakeWarp* Fake(Warp* warp) { return static_cast<FakeWarp*>(warp); }

// The byte of a fake memory, or nullptr.
std::byte* Find(Warp* warp, Space space, uint64_t address, uint32_t bytes) {
  if (space == Space::kGeneric) space = SplitGeneric(&address);
  std::vector<std::byte>& memory =
      space == Space::kShared ? Fake(warp)->shared : Fake(warp)->global;
  const uint64_t offset = address - (space == Space::kShared ? kSharedBase : kGlobalBase);
  if (offset > memory.size() || bytes > memory.size() - offset) return nullptr;
  return memory.data() + offset;
}

std::byte* FindChecked(Warp* warp, const Op& op, int lane, Space space, uint64_t address,
                       uint32_t bytes) {
  std::byte* const found = Find(warp, space, address, bytes);
  if (found != nullptr && address % bytes == 0) return found;
  const FaultKind kind = found == nullptr ? FaultKind::kOutOfBounds : FaultKind::kMisaligned;
  ReportMemoryFault(warp, op, lane, kind, space, address, bytes, "");
  return nullptr;
}

bool PrepareAll(Warp* warp, Space space, uint32_t mask, const uint64_t* addresses, uint32_t bytes,
                WarpAccess* access) {
  if (!Fake(warp)->fast_accesses) return false;
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    if (addresses[lane] % bytes != 0) return false;
    const std::byte* const place = Find(warp, space, addresses[lane], bytes);
    if (place == nullptr) return false;
    access->base = space == Space::kShared ? Fake(warp)->shared.data() : Fake(warp)->global.data();
    access->offset[lane] = static_cast<uint64_t>(place - access->base);
  }
  ++Fake(warp)->fast_access_count;
  return true;
}

}  // namespace

class FakeWarp::FakeDecoder : public Decoder {
 public:
  explicit FakeDecoder(std::byte* registers, int mma_arch) : registers_(registers) {
    program_.mma_arch = mma_arch;
  }

  int Add(Type type) {
    types_.push_back(type);
    offsets_.push_back(Scratch(type == Type::kPred ? 1 : TypeBytes(type)));
    return static_cast<int>(types_.size()) - 1;
  }
  uint32_t offset(int reg) const { return offsets_[static_cast<size_t>(reg)]; }

  absl::StatusOr<uint32_t> Source(const Operand& operand, Type type) override {
    if (operand.kind == Operand::Kind::kInteger) return Constant(operand.bits, TypeBytes(type));
    return Register(operand, type);
  }
  absl::StatusOr<uint32_t> SourceAnyWidth(const Operand& operand, Type type, int* width) override {
    *width = TypeBytes(types_[static_cast<size_t>(operand.reg)]);
    return offset(operand.reg);
  }
  absl::StatusOr<uint32_t> Destination(const Operand& operand, Type type) override {
    if (operand.kind == Operand::Kind::kSink) return Scratch(8);
    return Register(operand, type);
  }
  absl::StatusOr<uint32_t> DestinationAnyWidth(const Operand& operand, Type type,
                                               int* width) override {
    return SourceAnyWidth(operand, type, width);
  }
  absl::StatusOr<uint32_t> Predicate(const Operand& operand, bool* negated) override {
    *negated = operand.negated;
    return Register(operand, Type::kPred);
  }
  absl::StatusOr<uint32_t> PredicateDestination(const Operand& operand) override {
    return Register(operand, Type::kPred);
  }
  absl::StatusOr<uint32_t> PairPredicate(const Operand& operand) override {
    return operand.pair < 0 ? kNoRegister : offset(operand.pair);
  }
  uint32_t Scratch(int bytes_per_lane) override {
    const uint32_t at = next_;
    next_ += static_cast<uint32_t>(std::max(2, bytes_per_lane)) * kLanes;
    return at;
  }
  uint32_t Constant(uint64_t bits, int bytes) override {
    const uint32_t at = Scratch(bytes);
    for (int lane = 0; lane < kLanes; ++lane) {
      std::memcpy(registers_ + at + lane * bytes, &bits, static_cast<size_t>(bytes));
    }
    return at;
  }
  absl::Status Address(const Operand& operand, uint32_t* reg, int64_t* offset_out,
                       bool* narrow) override {
    if (operand.kind != Operand::Kind::kAddress) return absl::InvalidArgumentError("no address");
    *reg = offset(operand.reg);
    *offset_out = operand.offset;
    *narrow = TypeBytes(types_[static_cast<size_t>(operand.reg)]) == 4;
    return absl::OkStatus();
  }
  uint32_t AddList(const std::vector<uint32_t>& values) override {
    const auto first = static_cast<uint32_t>(program_.lists.size());
    program_.lists.insert(program_.lists.end(), values.begin(), values.end());
    return first;
  }
  OpInfo* info() override { return &info_; }
  Program* program() override { return &program_; }

 private:
  absl::StatusOr<uint32_t> Register(const Operand& operand, Type type) {
    if (operand.kind != Operand::Kind::kRegister) return absl::InvalidArgumentError("no register");
    const Type is = types_[static_cast<size_t>(operand.reg)];
    if (TypeBytes(is) != TypeBytes(type) || (is == Type::kPred) != (type == Type::kPred)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a register of ", TypeBytes(is), " bytes where ", TypeBytes(type), " are meant"));
    }
    return offset(operand.reg);
  }

  std::byte* const registers_;
  uint32_t next_ = 0;
  std::vector<Type> types_;
  std::vector<uint32_t> offsets_;
  OpInfo info_;
  Program program_;
};

FakeWarp::FakeWarp(int mma_arch) : shared(kMemoryBytes), global(kMemoryBytes) {
  registers = static_cast<std::byte*>(::operator new (kRegisterBytes, std::align_val_t{64}));
  std::memset(registers, 0, kRegisterBytes);
  live = kAllLanes;
  decoder_ = std::make_unique<FakeDecoder>(registers, mma_arch);
}

FakeWarp::~FakeWarp() { ::operator delete (registers, std::align_val_t{64}); }

Operand FakeWarp::NewRegister(Type type) {
  Operand operand;
  operand.kind = Operand::Kind::kRegister;
  operand.reg = decoder_->Add(type);
  return operand;
}

std::vector<Operand> FakeWarp::NewRegisters(Type type, int count) {
  std::vector<Operand> operands;
  for (int i = 0; i < count; ++i) operands.push_back(NewRegister(type));
  return operands;
}

uint32_t FakeWarp::OffsetOf(const Operand& operand) const { return decoder_->offset(operand.reg); }

const OpInfo& FakeWarp::info() const { return *decoder_->info(); }

absl::Status FakeWarp::Decode(std::string_view opcode, std::vector<Operand> operands) {
  OpTable table;
  AddWarpOps(&table);
  AddMmaOps(&table);
  AddMatrixOps(&table);
  table.Add("bar", &DecodeWarpBarrier);
  Instruction instruction;
  instruction.opcode = std::string(opcode);
  instruction.modifiers = absl::StrSplit(instruction.opcode, '.');
  instruction.mnemonic = instruction.modifiers.front();
  instruction.modifiers.erase(instruction.modifiers.begin());
  instruction.operands = std::move(operands);
  const DecodeFunction decode = table.Find(instruction.mnemonic);
  if (decode == nullptr) return absl::NotFoundError(instruction.mnemonic);
  op_ = Op();
  absl::Status status = decode(instruction, decoder_.get(), &op_);
  lists = decoder_->program()->lists.data();
  return status;
}

void FakeWarp::Run(uint32_t mask) {
  event = WarpEvent::kNone;
  active = live;
  op_.handler(this, op_, mask);
}

Operand Integer(int64_t value) {
  Operand operand;
  operand.kind = Operand::Kind::kInteger;
  operand.bits = static_cast<uint64_t>(value);
  return operand;
}

Operand Vector(std::vector<Operand> elements) {
  Operand operand;
  operand.kind = Operand::Kind::kVector;
  operand.elements = std::move(elements);
  return operand;
}

Operand Address(const Operand& base, int64_t offset) {
  Operand operand = base;
  operand.kind = Operand::Kind::kAddress;
  operand.offset = offset;
  return operand;
}

Operand WithPredicate(Operand destination, const Operand& predicate) {
  destination.pair = predicate.reg;
  return destination;
}

Operand Negated(Operand predicate) {
  predicate.negated = true;
  return predicate;
}

bool CountKnownFault(Warp* warp, const Op& op, FaultKind kind) { return false; }

void ReportFault(Warp* warp, const Op& op, int lane, FaultKind kind, std::string message) {
  Fake(warp)->faults.push_back({lane, kind, std::move(message)});
  if (kind != FaultKind::kAbsentLane) warp->event = WarpEvent::kStopped;
}

void ReportMemoryFault(Warp* warp, const Op& op, int lane, FaultKind kind, Space space,
                       uint64_t address, uint32_t bytes, std::string message) {
  ReportFault(warp, op, lane, kind, std::move(message));
}

bool Converge(Warp* warp, const Op& op, uint32_t mask, uint32_t members) {
  if ((mask & ~members) != 0) {
    ReportFault(warp, op, 0, FaultKind::kAbsentLane, "not a member");
    return true;
  }
  if ((members & warp->live & ~mask) == 0) return true;
  Fake(warp)->parked.push_back(mask);
  warp->active = 0;
  warp->event = WarpEvent::kParked;
  return false;
}

void WarpBarrier(Warp* warp, const Op& op, uint32_t mask, uint32_t members) {
  if (Converge(warp, op, mask, members)) Fake(warp)->barriers.push_back(mask);
}

bool LoadLane(Warp* warp, const Op& op, int lane, Space space, uint64_t address, uint32_t bytes,
              void* value) {
  const std::byte* const from = FindChecked(warp, op, lane, space, address, bytes);
  if (from == nullptr) return false;
  std::memcpy(value, from, bytes);
  return true;
}

bool StoreLane(Warp* warp, const Op& op, int lane, Space space, uint64_t address, uint32_t bytes,
               const void* value) {
  std::byte* const to = FindChecked(warp, op, lane, space, address, bytes);
  if (to == nullptr) return false;
  std::memcpy(to, value, bytes);
  return true;
}

void ComputeAddresses(const Warp* warp, const Op& op, uint64_t* addresses) {
  for (int lane = 0; lane < kLanes; ++lane) {
    addresses[lane] = (op.extra & kNarrowAddress) != 0
                          ? Lanes<uint32_t>(warp, op.a)[lane] + static_cast<uint32_t>(op.data)
                          : Lanes<uint64_t>(warp, op.a)[lane] + op.data;
  }
}

Space SplitGeneric(uint64_t* address) {
  if (*address - kSharedWindow >= kWindowBytes) return Space::kGlobal;
  *address -= kSharedWindow;
  return Space::kShared;
}

bool PrepareGlobal(Warp* warp, const Op& op, uint32_t mask, const uint64_t* addresses,
                   uint32_t bytes, AccessKind kind, WarpAccess* access) {
  return PrepareAll(warp, Space::kGlobal, mask, addresses, bytes, access);
}

bool PrepareShared(Warp* warp, const Op& op, uint32_t mask, const uint64_t* addresses,
                   uint32_t bytes, AccessKind kind, WarpAccess* access) {
  return PrepareAll(warp, Space::kShared, mask, addresses, bytes, access);
}

}  // namespace assay::emulator
