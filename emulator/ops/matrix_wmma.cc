#include "emulator/ops/matrix_wmma.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "emulator/execute/memory_access.h"
#include "emulator/execute/warp.h"
#include "emulator/ops/matrix_access.h"
#include "emulator/ops/memory_decode.h"
#include "emulator/ops/mma.h"

namespace assay::emulator {
namespace {

enum class Part : uint8_t { kA, kB, kAccumulators };

// Op::extra beyond kNarrowAddress and the space. Op::b is the stride, if there is one, Op::list the
// registers.
constexpr uint32_t kPartShift = 8;  // two bits
constexpr uint32_t kRowMajor = 1u << 10;
constexpr uint32_t kElementShift = 12;  // four bits
constexpr uint32_t kExtentShift = 16;   // four bits
constexpr uint32_t kDepthShift = 20;    // the rest
constexpr std::pair<uint8_t, uint8_t> kExtents[] = {{16, 16}, {32, 8}, {8, 32}, {8, 8}};

struct Fragment {
  Tile tile;
  Part part = Part::kA;
  Element element = Element::kNone;
  bool row_major = false;

  int bits() const { return ElementBits(element); }
  // Steps of one stride along the k or n of A, and so on: the elements of a row or column in
  // memory.
  int leading_extent() const {
    switch (part) {
      case Part::kA:
        return row_major ? tile.k : tile.m;
      case Part::kB:
        return row_major ? tile.n : tile.k;
      case Part::kAccumulators:
        break;
    }
    return row_major ? tile.n : tile.m;
  }
};

uint32_t PackFragment(const Fragment& fragment) {
  uint32_t extents = 0;
  while (kExtents[extents] != std::pair(fragment.tile.m, fragment.tile.n)) ++extents;
  return static_cast<uint32_t>(fragment.part) << kPartShift |
         (fragment.row_major ? kRowMajor : 0u) |
         static_cast<uint32_t>(fragment.element) << kElementShift | extents << kExtentShift |
         static_cast<uint32_t>(fragment.tile.k) << kDepthShift;
}

Fragment FragmentOf(const Op& op) {
  const auto [m, n] = kExtents[op.extra >> kExtentShift & 15];
  Fragment fragment;
  fragment.tile = {m, n, static_cast<uint16_t>(op.extra >> kDepthShift)};
  fragment.part = static_cast<Part>(op.extra >> kPartShift & 3);
  fragment.element = static_cast<Element>(op.extra >> kElementShift & 15);
  fragment.row_major = (op.extra & kRowMajor) != 0;
  return fragment;
}

// Where each lane finds the matrix, and elements from one row or column to the next.
struct MatrixPlace {
  alignas(64) uint64_t base[kLanes];
  alignas(64) uint64_t stride[kLanes];
};

// Base and stride, with a report when they are not aligned: false then. The PTX ISA wants the base
// at a multiple of the fragment, and CUDA's wmma a stride of a multiple of 16 bytes.
bool FindMatrix(Warp* warp, const Op& op, uint32_t mask, const Fragment& fragment,
                MatrixPlace* place) {
  ComputeAddresses(warp, op, place->base);
  if (op.b == kNoRegister) {
    std::fill_n(place->stride, kLanes, static_cast<uint64_t>(fragment.leading_extent()));
  } else {
    std::copy_n(Lanes<uint32_t>(warp, op.b), kLanes, place->stride);
  }
  const auto register_bytes = static_cast<uint64_t>(fragment.bits() == 64 ? 8 : 4);
  const uint64_t bytes = std::min<uint64_t>(32, op.list_size * register_bytes);
  const uint64_t row_bytes = std::min<uint64_t>(16, bytes);
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const uint64_t stride_bits = place->stride[lane] * static_cast<uint64_t>(fragment.bits());
    if (place->base[lane] % bytes == 0 && stride_bits % (8 * row_bytes) == 0) continue;
    ReportMemoryFault(
        warp, op, lane, FaultKind::kMisaligned, MatrixSpace(op), place->base[lane],
        static_cast<uint32_t>(bytes),
        absl::StrCat("the matrix is at 0x", absl::Hex(place->base[lane]), " with a stride of ",
                     place->stride[lane], " elements; its address must be a multiple of ", bytes,
                     " bytes and its stride one of ", row_bytes, " bytes"));
    return false;
  }
  return true;
}

uint64_t AddressOf(const Op& op, const MatrixPlace& place, int lane, uint64_t outer, uint64_t inner,
                   int bits) {
  const uint64_t element = outer * place.stride[lane] + inner;
  const uint64_t address = place.base[lane] + element * static_cast<uint64_t>(bits) / 8;
  return (op.extra & kNarrowAddress) != 0 ? static_cast<uint32_t>(address) : address;
}

// A multiplicand whose rows of k are together in memory: whole registers.
template <typename Word>
bool LoadWords(Warp* warp, const Op& op, uint32_t mask, const Fragment& fragment,
               const Multiplicand& shape, const MatrixPlace& place, int index, Word* values) {
  const int per_word = static_cast<int>(sizeof(Word)) * 8 / fragment.bits();
  alignas(64) uint64_t addresses[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    const Multiplicand::Place at = shape.PlaceOf(index, lane);
    addresses[lane] = AddressOf(op, place, lane, static_cast<uint64_t>(at.row),
                                static_cast<uint64_t>(at.word * per_word), fragment.bits());
  }
  return LoadMatrixLanes(warp, op, mask, addresses, sizeof(Word),
                         reinterpret_cast<std::byte*>(values));
}

// One whose columns are: element by element.
template <typename Word>
bool LoadElements(Warp* warp, const Op& op, uint32_t mask, const Fragment& fragment,
                  const Multiplicand& shape, const MatrixPlace& place, int index, Word* values) {
  const auto bytes = static_cast<uint32_t>(fragment.bits() / 8);
  const int per_word = static_cast<int>(sizeof(Word) / bytes);
  alignas(64) uint64_t addresses[kLanes];
  std::fill_n(values, kLanes, Word{0});
  for (int part = 0; part < per_word; ++part) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const Multiplicand::Place at = shape.PlaceOf(index, lane);
      addresses[lane] = AddressOf(op, place, lane, static_cast<uint64_t>(at.word * per_word + part),
                                  static_cast<uint64_t>(at.row), fragment.bits());
    }
    alignas(64) std::byte packed[kLanes * sizeof(Word)] = {};
    if (!LoadMatrixLanes(warp, op, mask, addresses, bytes, packed)) return false;
    for (int lane = 0; lane < kLanes; ++lane) {
      Word element = 0;
      std::memcpy(&element, packed + static_cast<size_t>(lane) * bytes, bytes);
      values[lane] |= element << (part * static_cast<int>(bytes) * 8);
    }
  }
  return true;
}

template <typename Word>
void LoadMultiplicand(Warp* warp, const Op& op, uint32_t mask) {
  if (!MeetAligned(warp, op, mask)) return;
  const Fragment fragment = FragmentOf(op);
  MatrixPlace place;
  if (!FindMatrix(warp, op, mask, fragment, &place)) return;
  const bool is_b = fragment.part == Part::kB;
  const Multiplicand shape = MultiplicandOf(fragment.tile, is_b, fragment.bits());
  const uint32_t* const registers = OpList(warp, op);
  for (int i = 0; i < shape.registers(); ++i) {
    alignas(64) Word values[kLanes] = {};
    const bool loaded = fragment.row_major != is_b
                            ? LoadWords(warp, op, mask, fragment, shape, place, i, values)
                            : LoadElements(warp, op, mask, fragment, shape, place, i, values);
    if (!loaded) return;
    for (int copy = i; copy < op.list_size; copy += shape.registers()) {
      Word* const lanes = Lanes<Word>(warp, registers[copy]);
      EachLane(mask, [&](int lane) { lanes[lane] = values[lane]; });
    }
  }
}

// Addresses of accumulators number `index` of all lanes.
void AccumulatorAddresses(const Op& op, const Fragment& fragment, const Accumulators& shape,
                          const MatrixPlace& place, int index, uint64_t* addresses) {
  // Rows and columns of the tile change places with those of the matrix, or not.
  const bool row_outer = fragment.row_major != fragment.tile.transposed();
  for (int lane = 0; lane < kLanes; ++lane) {
    const Accumulators::Place at = shape.PlaceOf(index, lane);
    addresses[lane] =
        AddressOf(op, place, lane, static_cast<uint64_t>(row_outer ? at.row : at.column),
                  static_cast<uint64_t>(row_outer ? at.column : at.row), fragment.bits());
  }
}

// Two accumulators that are neighbours in a row of the tile, as one access where they are in
// memory. Value i of a lane is `bytes` at pair + (2 * lane + i) * bytes.
bool TransferPair(Warp* warp, const Op& op, uint32_t mask, const Fragment& fragment,
                  const Accumulators& shape, const MatrixPlace& place, int index, bool load,
                  std::byte* pair) {
  const auto bytes = static_cast<uint32_t>(fragment.bits() / 8);
  alignas(64) uint64_t addresses[kLanes];
  if (fragment.row_major != fragment.tile.transposed()) {
    AccumulatorAddresses(op, fragment, shape, place, index, addresses);
    return load ? LoadMatrixLanes(warp, op, mask, addresses, 2 * bytes, pair)
                : StoreMatrixLanes(warp, op, mask, addresses, 2 * bytes, pair);
  }
  for (int i = 0; i < 2; ++i) {
    AccumulatorAddresses(op, fragment, shape, place, index + i, addresses);
    alignas(64) std::byte packed[kLanes * 8] = {};
    const auto at = [&](int lane) {
      return pair + (size_t{2} * static_cast<size_t>(lane) + static_cast<size_t>(i)) * bytes;
    };
    if (load) {
      if (!LoadMatrixLanes(warp, op, mask, addresses, bytes, packed)) return false;
      for (int lane = 0; lane < kLanes; ++lane) {
        std::memcpy(at(lane), packed + static_cast<size_t>(lane) * bytes, bytes);
      }
    } else {
      for (int lane = 0; lane < kLanes; ++lane) {
        std::memcpy(packed + static_cast<size_t>(lane) * bytes, at(lane), bytes);
      }
      if (!StoreMatrixLanes(warp, op, mask, addresses, bytes, packed)) return false;
    }
  }
  return true;
}

// `Word` is a register; with kHalf it holds both values of a pair.
template <typename Word, bool kHalf, bool kLoad>
void TransferAccumulators(Warp* warp, const Op& op, uint32_t mask) {
  if (!MeetAligned(warp, op, mask)) return;
  const Fragment fragment = FragmentOf(op);
  MatrixPlace place;
  if (!FindMatrix(warp, op, mask, fragment, &place)) return;
  const Accumulators shape = AccumulatorsOf(fragment.tile);
  const uint32_t* const registers = OpList(warp, op);
  constexpr int kWords = kHalf ? 1 : 2;
  for (int index = 0; index < shape.per_lane(); index += 2) {
    alignas(64) Word pair[kWords * kLanes] = {};
    const uint32_t* const here = registers + index / 2 * kWords;
    if constexpr (!kLoad) {
      for (int i = 0; i < kWords; ++i) {
        const Word* const lanes = Lanes<Word>(warp, here[i]);
        for (int lane = 0; lane < kLanes; ++lane) pair[kWords * lane + i] = lanes[lane];
      }
    }
    if (!TransferPair(warp, op, mask, fragment, shape, place, index, kLoad,
                      reinterpret_cast<std::byte*>(pair))) {
      return;
    }
    if constexpr (kLoad) {
      for (int i = 0; i < kWords; ++i) {
        Word* const lanes = Lanes<Word>(warp, here[i]);
        EachLane(mask, [&](int lane) { lanes[lane] = pair[kWords * lane + i]; });
      }
    }
  }
}

template <bool kLoad>
Handler AccumulatorHandler(Element element) {
  if (element == Element::kF64) return &TransferAccumulators<uint64_t, false, kLoad>;
  if (element == Element::kF16) return &TransferAccumulators<uint32_t, true, kLoad>;
  return &TransferAccumulators<uint32_t, false, kLoad>;
}

// Whether a tile with accumulators of `element` exists.
bool IsAccumulatorTile(const Tile& tile, Element element) {
  const auto any = [&](std::initializer_list<Element> multiplicands) {
    return std::any_of(multiplicands.begin(), multiplicands.end(),
                       [&](Element multiplicand) { return IsWmmaTile(tile, multiplicand); });
  };
  switch (element) {
    case Element::kF16:
      return any({Element::kF16});
    case Element::kF32:
      return any({Element::kF16, Element::kBF16, Element::kTF32});
    case Element::kS32:
      return any({Element::kS8, Element::kS4, Element::kB1});
    case Element::kF64:
      return any({Element::kF64});
    default:
      return false;
  }
}

absl::Status TakePart(bool load, Modifiers* modifiers, Part* part) {
  if (load && modifiers->Take("a")) {
    *part = Part::kA;
  } else if (load && modifiers->Take("b")) {
    *part = Part::kB;
  } else if (modifiers->Take(load ? "c" : "d")) {
    *part = Part::kAccumulators;
  } else {
    return UnknownModifier("matrix", *modifiers);
  }
  return absl::OkStatus();
}

absl::Status CheckFragment(const Fragment& fragment) {
  const bool accumulators = fragment.part == Part::kAccumulators;
  const bool known = accumulators ? IsAccumulatorTile(fragment.tile, fragment.element)
                                  : IsWmmaTile(fragment.tile, fragment.element);
  if (!known) {
    return absl::UnimplementedError(absl::StrCat(
        "no fragment of shape m", fragment.tile.m, "n", fragment.tile.n, "k", fragment.tile.k,
        " with elements ", std::string(ElementName(fragment.element))));
  }
  const bool by_rows = fragment.row_major != (fragment.part == Part::kB);
  if (fragment.bits() < 8 && !by_rows) {
    return absl::UnimplementedError("elements of less than a byte have A by rows and B by columns");
  }
  return absl::OkStatus();
}

absl::Status TakeFragment(bool load, Modifiers* modifiers, Fragment* fragment, Space* space) {
  ASSAY_RETURN_IF_ERROR(TakePart(load, modifiers, &fragment->part));
  ASSAY_RETURN_IF_ERROR(TakeSyncAligned(modifiers));
  fragment->row_major = modifiers->Take("row");
  if (!fragment->row_major) ASSAY_RETURN_IF_ERROR(TakeModifier("col", modifiers));
  fragment->tile = ParseTile(modifiers->current());
  if (fragment->tile.m == 0) return UnknownModifier("shape", *modifiers);
  modifiers->Skip();
  if (TakeSpace(modifiers, space) && *space != Space::kShared && *space != Space::kGlobal) {
    return absl::InvalidArgumentError(
        absl::StrCat("wmma loads from and stores to global and shared memory, not .",
                     std::string(SpaceName(*space))));
  }
  fragment->element = ParseElement(modifiers->current());
  if (fragment->element == Element::kNone) return UnknownModifier("element type", *modifiers);
  modifiers->Skip();
  return CheckFragment(*fragment);
}

int FragmentRegisters(const Fragment& fragment) {
  if (fragment.part == Part::kAccumulators) {
    return AccumulatorsOf(fragment.tile).per_lane() / (fragment.bits() == 16 ? 2 : 1);
  }
  const bool second = fragment.part == Part::kB;
  return WmmaRegisters(MultiplicandOf(fragment.tile, second, fragment.bits()), fragment.element);
}

}  // namespace

absl::Status DecodeMatrixAddress(const Operand& operand, Decoder* decoder, Op* op) {
  int64_t offset = 0;
  bool narrow = false;
  ASSAY_RETURN_IF_ERROR(decoder->Address(operand, &op->a, &offset, &narrow));
  op->data = static_cast<uint64_t>(offset);
  if (narrow) op->extra |= kNarrowAddress;
  return absl::OkStatus();
}

absl::Status DecodeWmmaTransfer(const Instruction& instruction, Decoder* decoder, Op* op) {
  Modifiers modifiers(instruction);
  const bool load = modifiers.Take("load");
  if (!load) ASSAY_RETURN_IF_ERROR(TakeModifier("store", &modifiers));
  Fragment fragment;
  Space space = Space::kGeneric;
  ASSAY_RETURN_IF_ERROR(TakeFragment(load, &modifiers, &fragment, &space));
  ASSAY_RETURN_IF_ERROR(modifiers.Finish());
  ASSAY_RETURN_IF_ERROR(CheckOperandCount(instruction, 2, 3));
  op->extra = PackFragment(fragment) | static_cast<uint32_t>(space) << kMatrixSpaceShift;

  const Type type = FragmentType(fragment.element);
  const auto count = static_cast<size_t>(FragmentRegisters(fragment));
  std::vector<uint32_t> list;
  ASSAY_RETURN_IF_ERROR(
      load ? DecodeDestinations(instruction.operands[0], type, count, decoder, &list)
           : DecodeSources(instruction.operands[1], type, count, decoder, &list));
  ASSAY_RETURN_IF_ERROR(DecodeMatrixAddress(instruction.operands[load ? 1 : 0], decoder, op));
  if (instruction.operands.size() == 3) {
    ASSAY_ASSIGN_OR_RETURN(op->b, decoder->Source(instruction.operands[2], Type::kB32));
  }
  op->list = decoder->AddList(list);
  op->list_size = static_cast<uint16_t>(count);
  if (fragment.part != Part::kAccumulators) {
    op->handler = fragment.bits() == 64 ? &LoadMultiplicand<uint64_t> : &LoadMultiplicand<uint32_t>;
  } else {
    op->handler = load ? AccumulatorHandler<true>(fragment.element)
                       : AccumulatorHandler<false>(fragment.element);
  }
  decoder->info()->op_class = OpClass::kMemory;
  return absl::OkStatus();
}

}  // namespace assay::emulator
