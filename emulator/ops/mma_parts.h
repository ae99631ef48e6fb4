// Floating-point elements as integers, eight at a time where that is worth it. Private to
// mma_dot.cc.
#ifndef ASSAY_EMULATOR_OPS_MMA_PARTS_H_
#define ASSAY_EMULATOR_OPS_MMA_PARTS_H_

#include <cstdint>
#include <cstring>

#include "emulator/ops/mma_tile.h"

namespace assay::emulator {

// Eight columns at once.
constexpr int kColumns = 8;
using Columns = int32_t __attribute__((vector_size(kColumns * sizeof(int32_t))));
using LongColumns = int64_t __attribute__((vector_size(kColumns * sizeof(int64_t))));
using DoubleColumns = double __attribute__((vector_size(kColumns * sizeof(double))));
using FloatColumns = float __attribute__((vector_size(kColumns * sizeof(float))));

// Vectors are never passed by value: how that is done depends on the instruction set.
inline void LoadColumns(const void* from, Columns* columns) {
  std::memcpy(columns, from, sizeof(*columns));
}
inline void StoreColumns(const Columns& columns, void* to) {
  std::memcpy(to, &columns, sizeof(columns));
}
inline bool AnyColumn(const Columns& columns) {
  uint64_t parts[4];
  std::memcpy(parts, &columns, sizeof(parts));
  return (parts[0] | parts[1] | parts[2] | parts[3]) != 0;
}

constexpr int kElementsMax = 512;  // of a multiplicand
// The exponent of zero: below that of every sum of exponents of numbers.
constexpr int32_t kZeroExponent = -1000;
enum Special : int8_t { kFinite, kInfinity, kMinusInfinity, kNan };

// A multiplicand taken apart: each element is significand * 2^(exponent - fraction_bits).
struct Parts {
  alignas(32) uint32_t bits[kElementsMax];
  alignas(32) int32_t significand[kElementsMax];
  alignas(32) int32_t exponent[kElementsMax];
  Special special[kElementsMax];  // only valid with has_special
  bool has_special = false;
  int fraction_bits = 0;

  Special SpecialAt(int at) const { return has_special ? special[at] : kFinite; }
};

struct Format {
  int exponent_bits;
  int fraction_bits;
  int bias;
  bool infinities;  // without them only the largest pattern is no number
  bool normalize;   // subnormals have the exponent that a wider format gives them
};

// Of floating-point multiplicands. With `as_f16` fp8 is what its conversion to f16 is.
Format FormatOf(Element element, bool as_f16);

struct Part {
  int32_t significand = 0;
  int32_t exponent = kZeroExponent;
  Special special = kFinite;
};

// One element out of its bit pattern.
Part TakeApart(uint32_t bits, const Format& format);

// A multiplicand of `rows` rows of `length` elements; element k of row r lands at
// r * row_stride + k * k_stride. With `halves` a row of fp8 is taken as two rows of f16, the first
// and the second halves of its registers, one behind the other.
void TakeApart(const uint32_t* words, int rows, int length, Element element, bool halves,
               int row_stride, int k_stride, Parts* parts);

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_OPS_MMA_PARTS_H_
