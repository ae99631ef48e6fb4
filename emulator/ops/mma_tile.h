// How the elements of a matrix lie in the registers of a warp, for mma, wmma and what loads for
// them.
//
// A multiplicand is seen as rows of k elements: the rows of A, the columns of B. A row is cut into
// words of one register, and lane 4 g + t holds in its registers words t of every four, of row g of
// every eight. The multiplicand whose rows are the rows of the tile has its eights in pairs when
// there are 16 or more. The accumulators lie in pairs of columns. So say the tables of the PTX ISA
// (chapter on warp-level matrix instructions) for mma; wmma fragments are what ptxas makes of them
// for sm_80: blocks of mma fragments, and for m8n32 those of the transposed product.
#ifndef ASSAY_EMULATOR_OPS_MMA_TILE_H_
#define ASSAY_EMULATOR_OPS_MMA_TILE_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "emulator/execute/lanes.h"
#include "emulator/program/program.h"

namespace assay::emulator {

enum class Element : uint8_t {
  kNone,
  kF16,
  kBF16,
  kTF32,
  kE4M3,
  kE5M2,
  kF64,
  kS8,
  kU8,
  kS4,
  kU4,
  kB1,
  kF32,  // accumulators only, as kS32
  kS32,
};
// "f16" to kF16; kNone for anything else.
Element ParseElement(std::string_view name);
std::string_view ElementName(Element element);
// In registers: 32 for tf32.
int ElementBits(Element element);
inline bool IsFp8(Element e) { return e == Element::kE4M3 || e == Element::kE5M2; }

// An m by n by k product.
struct Tile {
  uint8_t m = 0;
  uint8_t n = 0;
  uint16_t k = 0;

  // An 8 by 32 product is worked out as the transpose of a 32 by 8 one: A and B change places.
  bool transposed() const { return m == 8 && n == 32; }
  int rows() const { return transposed() ? n : m; }
  int columns() const { return transposed() ? m : n; }
};
// "m16n8k16"; m is 0 for what is no shape.
Tile ParseTile(std::string_view name);

// The largest matrices of any shape, in words of a register.
inline constexpr int kTileWordsMax = 256;
inline constexpr int kTileAccumulatorsMax = 256;

// One of the two multiplicands of a tile.
struct Multiplicand {
  int rows = 0;
  int words = 0;        // of a row
  bool paired = false;  // rows g and g + 8 in neighbouring registers

  int registers() const { return rows * words / kLanes; }
  struct Place {
    int row = 0;
    int word = 0;
  };
  // Of what `lane` holds in its register number `index`.
  Place PlaceOf(int index, int lane) const {
    const int groups = words / 4;
    const int block = paired ? index / (2 * groups) * 2 + index % 2 : index / groups;
    const int group = (paired ? index / 2 : index) % groups;
    return {block * 8 + lane / 4, group * 4 + lane % 4};
  }
};
// A (or with `second` B) of elements of `bits`.
Multiplicand MultiplicandOf(const Tile& tile, bool second, int bits);

// Accumulators, one value of `rows` x `columns` after another.
struct Accumulators {
  int rows = 0;
  int columns = 0;

  int per_lane() const { return rows * columns / kLanes; }
  struct Place {
    int row = 0;
    int column = 0;
  };
  // Of value number `index` of `lane`; two 16-bit values share a register.
  Place PlaceOf(int index, int lane) const {
    const int column = 2 * (lane % 4) + index % 2;
    if (rows < 16) return {lane / 4, index / 2 * 8 + column};
    const int blocks = columns / 8;
    const int block = index / 4;
    return {block / blocks * 16 + index / 2 % 2 * 8 + lane / 4, block % blocks * 8 + column};
  }
};
inline Accumulators AccumulatorsOf(const Tile& tile) { return {tile.rows(), tile.columns()}; }

// Copies a multiplicand out of `registers` (offsets in the register file), row after row.
template <typename Word>
void GatherMultiplicand(const Warp* warp, const uint32_t* registers, const Multiplicand& from,
                        Word* words) {
  for (int i = 0; i < from.registers(); ++i) {
    const Word* const lanes = Lanes<Word>(warp, registers[i]);
    const Multiplicand::Place first = from.PlaceOf(i, 0);
    Word* to = words + first.row * from.words + first.word;
    for (int row = 0; row < 8; ++row, to += from.words) {
      for (int word = 0; word < 4; ++word) to[word] = lanes[4 * row + word];
    }
  }
}

// Accumulators of one register each, out of registers and, for the lanes of `mask`, back.
template <typename Value>
void GatherAccumulators(const Warp* warp, const uint32_t* registers, const Accumulators& from,
                        Value* values) {
  for (int i = 0; i < from.per_lane(); ++i) {
    const Value* const lanes = Lanes<Value>(warp, registers[i]);
    const Accumulators::Place first = from.PlaceOf(i, 0);
    Value* to = values + first.row * from.columns + first.column;
    for (int row = 0; row < 8; ++row, to += from.columns) {
      for (int pair = 0; pair < 4; ++pair) to[2 * pair] = lanes[4 * row + pair];
    }
  }
}
template <typename Value>
void ScatterAccumulators(Warp* warp, const uint32_t* registers, const Accumulators& to,
                         uint32_t mask, const Value* values) {
  for (int i = 0; i < to.per_lane(); ++i) {
    Value* const lanes = Lanes<Value>(warp, registers[i]);
    const Accumulators::Place first = to.PlaceOf(i, 0);
    const Value* const from = values + first.row * to.columns + first.column;
    EachLane(mask, [=](int lane) { lanes[lane] = from[lane / 4 * to.columns + 2 * (lane % 4)]; });
  }
}

// The same for 16-bit accumulators, two in a register; each takes the low half of a value.
void GatherHalfAccumulators(const Warp* warp, const uint32_t* registers, const Accumulators& from,
                            uint32_t* values);
void ScatterHalfAccumulators(Warp* warp, const uint32_t* registers, const Accumulators& to,
                             uint32_t mask, const uint32_t* values);

// For instructions that are .aligned: true when the handler can go on for `mask`. Lanes that are
// not there are reported; those that may still come are waited for.
bool MeetAligned(Warp* warp, const Op& op, uint32_t mask);

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_OPS_MMA_TILE_H_
