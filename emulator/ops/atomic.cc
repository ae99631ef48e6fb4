// atom and red.
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "emulator/execute/block.h"
#include "emulator/execute/memory_access.h"
#include "emulator/execute/race_report.h"
#include "emulator/execute/warp.h"
#include "emulator/ops/half_add.h"
#include "emulator/ops/memory_decode.h"
#include "emulator/ops/ops.h"

namespace assay::emulator {
namespace {

constexpr uint32_t kReleases = 2;  // Op::extra beyond kNarrowAddress
constexpr uint32_t kSpaceShift = 4;

// What is stored when `old` meets the operands.
struct Add {
  template <typename T>
  static T Apply(T old, T b, T) {
    if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<U>(old) + static_cast<U>(b));
    } else {
      return old + b;
    }
  }
};
// atom.add.f32 on global memory flushes subnormal inputs and results to zero of the same sign.
struct AddFlushed {
  static float Flush(float x) {
    return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x;
  }
  static float Apply(float old, float b, float) { return Flush(Flush(old) + Flush(b)); }
};
struct Min {
  template <typename T>
  static T Apply(T old, T b, T) {
    return b < old ? b : old;
  }
};
struct Max {
  template <typename T>
  static T Apply(T old, T b, T) {
    return old < b ? b : old;
  }
};
struct And {
  template <typename T>
  static T Apply(T old, T b, T) {
    return old & b;
  }
};
struct Or {
  template <typename T>
  static T Apply(T old, T b, T) {
    return old | b;
  }
};
struct Xor {
  template <typename T>
  static T Apply(T old, T b, T) {
    return old ^ b;
  }
};
struct Exchange {
  template <typename T>
  static T Apply(T, T b, T) {
    return b;
  }
};
struct CompareAndSwap {
  template <typename T>
  static T Apply(T old, T compare, T value) {
    return old == compare ? value : old;
  }
};
struct Increment {
  static uint32_t Apply(uint32_t old, uint32_t b, uint32_t) { return old >= b ? 0 : old + 1; }
};
struct Decrement {
  static uint32_t Apply(uint32_t old, uint32_t b, uint32_t) {
    return old == 0 || old > b ? b : old - 1;
  }
};
// Two halves in one word; each is rounded by itself.
template <uint16_t (*kAdd)(uint16_t, uint16_t)>
struct AddHalves {
  static uint32_t Apply(uint32_t old, uint32_t b, uint32_t) {
    const uint32_t low = kAdd(static_cast<uint16_t>(old), static_cast<uint16_t>(b));
    const uint32_t high = kAdd(static_cast<uint16_t>(old >> 16), static_cast<uint16_t>(b >> 16));
    return high << 16 | low;
  }
};
template <uint16_t (*kAdd)(uint16_t, uint16_t)>
struct AddHalf {
  static uint16_t Apply(uint16_t old, uint16_t b, uint16_t) { return kAdd(old, b); }
};

// One update; other host threads may update the same place. `before_change` is called unless the
// value stays as it is, perhaps more than once.
template <typename T, typename F, typename G>
T Update(std::byte* at, T b, T c, G&& before_change) {
  using Bits = std::conditional_t<sizeof(T) == 2, uint16_t,
                                  std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;
  std::atomic_ref<Bits> place(*reinterpret_cast<Bits*>(at));
  Bits old = place.load(std::memory_order_acquire);
  while (true) {
    const auto next = std::bit_cast<Bits>(F::Apply(std::bit_cast<T>(old), b, c));
    if (next == old) return std::bit_cast<T>(old);
    before_change();
    if (place.compare_exchange_weak(old, next, std::memory_order_acq_rel))
      return std::bit_cast<T>(old);
  }
}

// Lanes in the order of their number or, with a seed, from a random one on and in a random
// direction: hardware promises none.
template <typename F>
void EachLaneInSomeOrder(Warp* warp, uint32_t mask, F&& f) {
  if (warp->block->launch().options.seed == 0) {
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
      if (!f(std::countr_zero(rest))) return;
    }
    return;
  }
  const uint64_t random = NextRandom(warp);
  const int start = static_cast<int>(random % kLanes);
  const int step = (random >> 8 & 1) != 0 ? 1 : kLanes - 1;
  for (int i = 0, lane = start; i < kLanes; ++i, lane = (lane + step) % kLanes) {
    if ((mask >> lane & 1) != 0 && !f(lane)) return;
  }
}

template <typename T, typename F>
void Atomic(Warp* warp, const Op& op, uint32_t mask) {
  alignas(64) uint64_t addresses[kLanes];
  ComputeAddresses(warp, op, addresses);
  const auto given = static_cast<Space>(op.extra >> kSpaceShift & 15);
  const T* const b = Lanes<T>(warp, op.b);
  const T* const c = op.c == kNoRegister ? b : Lanes<T>(warp, op.c);
  T* const out = op.dst == kNoRegister ? nullptr : Lanes<T>(warp, op.dst);
  const bool releases = (op.extra & kReleases) != 0 || StateOf(warp)->fenced;
  PlaceHold hold;
  HoldPlaces(warp, given, mask, addresses, &hold);
  EachLaneInSomeOrder(warp, mask, [&](int lane) {
    uint64_t address = addresses[lane];
    const Space space = given == Space::kGeneric ? SplitGeneric(&address) : given;
    std::byte* const at =
        PrepareLane(warp, op, lane, space, address, sizeof(T), AccessKind::kAtomic, nullptr);
    if (at == nullptr) return warp->event != WarpEvent::kStopped;
    // Who sees the new value must find what was released with it. A lock that is not won, or a
    // poll, releases nothing.
    const T old = Update<T, F>(at, b[lane], c[lane], [&] {
      if (releases) ReleaseAt(warp, space, address);
    });
    if (out != nullptr) out[lane] = old;
    AcquireAt(warp, space, address);
    return true;
  });
}

struct AtomicForm {
  std::string_view operation;
  Type type;
  Handler handler;
};
constexpr AtomicForm kForms[] = {
    {"add", Type::kU32, Atomic<uint32_t, Add>},
    {"add", Type::kS32, Atomic<int32_t, Add>},
    {"add", Type::kU64, Atomic<uint64_t, Add>},
    {"add", Type::kS64, Atomic<int64_t, Add>},
    {"add", Type::kF32, Atomic<float, Add>},
    {"add", Type::kF64, Atomic<double, Add>},
    {"add", Type::kF16, Atomic<uint16_t, AddHalf<AddF16>>},
    {"add", Type::kF16x2, Atomic<uint32_t, AddHalves<AddF16>>},
    {"add", Type::kBF16, Atomic<uint16_t, AddHalf<AddBF16>>},
    {"add", Type::kBF16x2, Atomic<uint32_t, AddHalves<AddBF16>>},
    {"min", Type::kU32, Atomic<uint32_t, Min>},
    {"min", Type::kS32, Atomic<int32_t, Min>},
    {"min", Type::kU64, Atomic<uint64_t, Min>},
    {"min", Type::kS64, Atomic<int64_t, Min>},
    {"max", Type::kU32, Atomic<uint32_t, Max>},
    {"max", Type::kS32, Atomic<int32_t, Max>},
    {"max", Type::kU64, Atomic<uint64_t, Max>},
    {"max", Type::kS64, Atomic<int64_t, Max>},
    {"and", Type::kB32, Atomic<uint32_t, And>},
    {"and", Type::kB64, Atomic<uint64_t, And>},
    {"or", Type::kB32, Atomic<uint32_t, Or>},
    {"or", Type::kB64, Atomic<uint64_t, Or>},
    {"xor", Type::kB32, Atomic<uint32_t, Xor>},
    {"xor", Type::kB64, Atomic<uint64_t, Xor>},
    {"exch", Type::kB32, Atomic<uint32_t, Exchange>},
    {"exch", Type::kB64, Atomic<uint64_t, Exchange>},
    {"cas", Type::kB16, Atomic<uint16_t, CompareAndSwap>},
    {"cas", Type::kB32, Atomic<uint32_t, CompareAndSwap>},
    {"cas", Type::kB64, Atomic<uint64_t, CompareAndSwap>},
    {"inc", Type::kU32, Atomic<uint32_t, Increment>},
    {"dec", Type::kU32, Atomic<uint32_t, Decrement>},
};

struct AtomicModifiers {
  Space space = Space::kGeneric;
  std::string operation;
  Type type = Type::kNone;
  bool releases = false;
  bool keeps_subnormals = false;
};

absl::StatusOr<AtomicModifiers> DecodeModifiers(const Instruction& instruction) {
  AtomicModifiers m;
  Modifiers modifiers(instruction);
  while (!modifiers.at_end()) {
    if (modifiers.Take("relaxed") || modifiers.Take("acquire")) continue;
    if (modifiers.Take("release") || modifiers.Take("acq_rel")) {
      m.releases = true;
    } else if (modifiers.Take("noftz")) {
      m.keeps_subnormals = true;
    } else if (TakeSpace(&modifiers, &m.space) || TakeScopeOrHint(&modifiers)) {
      continue;
    } else if (const Type type = modifiers.TakeType(); type != Type::kNone) {
      m.type = type;
    } else if (m.operation.empty() && !modifiers.at_end()) {
      m.operation = std::string(modifiers.current());
      modifiers.Skip();
    } else {
      break;
    }
  }
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  return m;
}

absl::Status DecodeAtomic(const Instruction& instruction, bool returns, Decoder* decoder, Op* op) {
  ASSAY_ASSIGN_OR_RETURN(const AtomicModifiers m, DecodeModifiers(instruction));
  const size_t first = returns ? 1 : 0;
  const size_t inputs = m.operation == "cas" ? 2 : 1;
  ASSAY_RETURN_IF_ERROR(CheckOperandCount(instruction, first + 1 + inputs, first + 2 + inputs));
  Type type = m.type;
  // Signed and untyped forms of what is the same on bits.
  if (type == Type::kB32 && (m.operation == "add" || m.operation == "inc")) type = Type::kU32;
  for (const AtomicForm& form : kForms) {
    if (form.operation == m.operation && form.type == type) op->handler = form.handler;
  }
  if (op->handler == nullptr) {
    return absl::UnimplementedError(
        absl::StrCat("atomic ", m.operation, " of type ", std::string(TypeName(m.type))));
  }
  const bool flushes = type == Type::kF32 && m.operation == "add" && m.space != Space::kShared &&
                       !m.keeps_subnormals;
  if (flushes) op->handler = Atomic<float, AddFlushed>;
  bool narrow = false;
  int64_t offset = 0;
  ASSAY_RETURN_IF_ERROR(decoder->Address(instruction.operands[first], &op->a, &offset, &narrow));
  op->data = static_cast<uint64_t>(offset);
  op->extra = static_cast<uint32_t>(m.space) << kSpaceShift | (m.releases ? kReleases : 0) |
              (narrow ? kNarrowAddress : 0);
  ASSAY_ASSIGN_OR_RETURN(op->b, decoder->Source(instruction.operands[first + 1], m.type));
  if (inputs == 2) {
    ASSAY_ASSIGN_OR_RETURN(op->c, decoder->Source(instruction.operands[first + 2], m.type));
  }
  if (returns) {
    ASSAY_ASSIGN_OR_RETURN(op->dst, decoder->Destination(instruction.operands[0], m.type));
  }
  decoder->info()->op_class = OpClass::kMemory;
  return absl::OkStatus();
}

absl::Status DecodeAtom(const Instruction& i, Decoder* d, Op* op) {
  return DecodeAtomic(i, true, d, op);
}
absl::Status DecodeRed(const Instruction& i, Decoder* d, Op* op) {
  return DecodeAtomic(i, false, d, op);
}

}  // namespace

void AddAtomicOps(OpTable* table) {
  table->Add("atom", DecodeAtom);
  table->Add("red", DecodeRed);
}

}  // namespace assay::emulator
