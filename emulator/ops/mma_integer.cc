// Integer and double-precision products.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "emulator/ops/mma_dot.h"

namespace assay::emulator {
namespace {

constexpr int kElementsMax = 1024;  // of a multiplicand of 4-bit integers
constexpr int kColumns = 8;
using Columns = int32_t __attribute__((vector_size(kColumns * sizeof(int32_t))));

// Every element as a 32-bit integer: element k of row r at r * row_stride + k * k_stride.
template <int kBits, bool kSigned>
void Unpack(const uint32_t* words, int rows, int length, int row_stride, int k_stride,
            int32_t* values) {
  constexpr int kPerWord = 32 / kBits;
  constexpr int kUnused = 32 - kBits;
  for (int row = 0; row < rows; ++row) {
    int32_t* to = values + row * row_stride;
    for (int k = 0; k < length; k += kPerWord) {
      const uint32_t word = *words++;
      for (int i = 0; i < kPerWord; ++i, to += k_stride) {
        const uint32_t top = word << (kUnused - i * kBits);
        *to = kSigned ? static_cast<int32_t>(top) >> kUnused : static_cast<int32_t>(top >> kUnused);
      }
    }
  }
}

void Unpack(Element element, const uint32_t* words, int rows, int length, int row_stride,
            int k_stride, int32_t* values) {
  switch (element) {
    case Element::kS8:
      return Unpack<8, true>(words, rows, length, row_stride, k_stride, values);
    case Element::kU8:
      return Unpack<8, false>(words, rows, length, row_stride, k_stride, values);
    case Element::kS4:
      return Unpack<4, true>(words, rows, length, row_stride, k_stride, values);
    default:
      return Unpack<4, false>(words, rows, length, row_stride, k_stride, values);
  }
}

uint32_t Clamp(int64_t value) {
  if (value > std::numeric_limits<int32_t>::max()) return 0x7fffffffu;
  if (value < std::numeric_limits<int32_t>::min()) return 0x80000000u;
  return static_cast<uint32_t>(value);
}

void MultiplyBits(const MmaProblem& problem, const uint32_t* a, const uint32_t* b,
                  uint32_t* values) {
  const int words = problem.k / 32;
  for (int row = 0; row < problem.rows; ++row) {
    for (int column = 0; column < problem.columns; ++column) {
      int count = 0;
      for (int i = 0; i < words; ++i) {
        const uint32_t x = a[row * words + i];
        const uint32_t y = b[column * words + i];
        count += std::popcount(problem.product == BitProduct::kAnd ? x & y : x ^ y);
      }
      values[row * problem.columns + column] += static_cast<uint32_t>(count);
    }
  }
}

}  // namespace

void MultiplyInteger(const MmaProblem& problem, const uint32_t* a, const uint32_t* b,
                     uint32_t* values) {
  if (problem.a == Element::kB1) return MultiplyBits(problem, a, b, values);
  alignas(32) int32_t left[kElementsMax];
  alignas(32) int32_t right[kElementsMax];
  const int columns = problem.columns;
  Unpack(problem.a, a, problem.rows, problem.k, problem.k, 1, left);
  Unpack(problem.b, b, columns, problem.k, 1, columns, right);
  for (int row = 0; row < problem.rows; ++row) {
    for (int column = 0; column < columns; column += kColumns) {
      // At most 64 products of 16 bits.
      Columns sums = {};
      for (int k = 0; k < problem.k; ++k) {
        Columns factors;
        std::memcpy(&factors, right + k * columns + column, sizeof(factors));
        sums += factors * left[row * problem.k + k];
      }
      for (int j = 0; j < kColumns; ++j) {
        uint32_t& value = values[row * columns + column + j];
        value = problem.saturate ? Clamp(int64_t{static_cast<int32_t>(value)} + sums[j])
                                 : value + static_cast<uint32_t>(sums[j]);
      }
    }
  }
}

void MultiplyDouble(const MmaProblem& problem, const uint64_t* a, const uint64_t* b,
                    uint64_t* values) {
  for (int row = 0; row < problem.rows; ++row) {
    for (int column = 0; column < problem.columns; ++column) {
      uint64_t& value = values[row * problem.columns + column];
      double sum = std::bit_cast<double>(value);
      for (int k = 0; k < problem.k; ++k) {
        sum = std::fma(std::bit_cast<double>(a[row * problem.k + k]),
                       std::bit_cast<double>(b[column * problem.k + k]), sum);
      }
      value = std::bit_cast<uint64_t>(sum);
    }
  }
}

}  // namespace assay::emulator
