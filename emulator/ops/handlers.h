// Handlers made of one lane's function: Operation::Apply(a, b, ...).
//
// Values are unsigned integers as wide as the register; an operation on signed or floating-point
// numbers takes them from the bits. The loops stay simple enough to become vector code.
#ifndef ASSAY_EMULATOR_OPS_HANDLERS_H_
#define ASSAY_EMULATOR_OPS_HANDLERS_H_

#include <cstdint>
#include <type_traits>

#include "emulator/execute/lanes.h"
#include "emulator/program/program.h"

namespace assay::emulator {

template <typename Operation, typename To, typename A>
void UnaryHandler(Warp* warp, const Op& op, uint32_t mask) {
  To* const to = Lanes<To>(warp, op.dst);
  const A* const a = Lanes<A>(warp, op.a);
  EachLane(mask, [=](int i) { to[i] = Operation::Apply(a[i]); });
}

template <typename Operation, typename To, typename A, typename B = A>
void BinaryHandler(Warp* warp, const Op& op, uint32_t mask) {
  To* const to = Lanes<To>(warp, op.dst);
  const A* const a = Lanes<A>(warp, op.a);
  const B* const b = Lanes<B>(warp, op.b);
  EachLane(mask, [=](int i) { to[i] = Operation::Apply(a[i], b[i]); });
}

template <typename Operation, typename To, typename A, typename B = A, typename C = B>
void TernaryHandler(Warp* warp, const Op& op, uint32_t mask) {
  To* const to = Lanes<To>(warp, op.dst);
  const A* const a = Lanes<A>(warp, op.a);
  const B* const b = Lanes<B>(warp, op.b);
  const C* const c = Lanes<C>(warp, op.c);
  EachLane(mask, [=](int i) { to[i] = Operation::Apply(a[i], b[i], c[i]); });
}

template <int kBytes>
struct UnsignedOfBytes;
template <>
struct UnsignedOfBytes<1> {
  using Value = uint8_t;
};
template <>
struct UnsignedOfBytes<2> {
  using Value = uint16_t;
};
template <>
struct UnsignedOfBytes<4> {
  using Value = uint32_t;
};
template <>
struct UnsignedOfBytes<8> {
  using Value = uint64_t;
};
// The type of a register that holds a T.
template <typename T>
using RegisterOf = typename UnsignedOfBytes<sizeof(T) < 2 ? 2 : sizeof(T)>::Value;
template <typename T>
using UnsignedOf = typename UnsignedOfBytes<sizeof(T)>::Value;

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_OPS_HANDLERS_H_
