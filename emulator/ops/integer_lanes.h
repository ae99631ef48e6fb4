// Integer operations on the values of one lane, shared by the integer files.
#ifndef ASSAY_EMULATOR_OPS_INTEGER_LANES_H_
#define ASSAY_EMULATOR_OPS_INTEGER_LANES_H_

#include <cstdint>
#include <limits>

#include "emulator/ops/handlers.h"

namespace assay::emulator {

// Twice as wide, same signedness.
template <typename T>
struct WiderInteger;
template <>
struct WiderInteger<uint16_t> {
  using Value = uint32_t;
};
template <>
struct WiderInteger<int16_t> {
  using Value = int32_t;
};
template <>
struct WiderInteger<uint32_t> {
  using Value = uint64_t;
};
template <>
struct WiderInteger<int32_t> {
  using Value = int64_t;
};
template <>
struct WiderInteger<uint64_t> {
  using Value = unsigned __int128;
};
template <>
struct WiderInteger<int64_t> {
  using Value = __int128;
};
template <typename T>
using Wider = typename WiderInteger<T>::Value;

// Low and high half of a product.
template <typename T>
inline UnsignedOf<T> ProductLow(UnsignedOf<T> a, UnsignedOf<T> b) {
  if constexpr (sizeof(T) == 2) {
    return static_cast<uint16_t>(uint32_t{a} * b);
  } else {
    return a * b;
  }
}
template <typename T>
inline UnsignedOf<T> ProductHigh(UnsignedOf<T> a, UnsignedOf<T> b) {
  const Wider<T> product = static_cast<Wider<T>>(static_cast<T>(a)) * static_cast<T>(b);
  return static_cast<UnsignedOf<T>>(product >> (8 * sizeof(T)));
}

inline uint32_t SaturateToS32(int64_t value) {
  if (value > std::numeric_limits<int32_t>::max()) return 0x7fffffffu;
  if (value < std::numeric_limits<int32_t>::min()) return 0x80000000u;
  return static_cast<uint32_t>(value);
}

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_OPS_INTEGER_LANES_H_
