// Conversions in passes over the lanes of a warp: values are taken from a register, changed step by
// step in a buffer, and put into another.
#ifndef ASSAY_EMULATOR_OPS_CONVERT_PASSES_H_
#define ASSAY_EMULATOR_OPS_CONVERT_PASSES_H_

#include <cstdint>

#include "emulator/execute/lanes.h"
#include "emulator/ops/rounding.h"
#include "emulator/ptx/module.h"

namespace assay::emulator {

// 32 values of up to 64 bits: integers (extended), bits of a format, or doubles.
struct ConvertBuffer {
  alignas(32) uint64_t bits[kLanes];
};

// The low bits of registers of `width` bytes (2, 4, 8) as a value of `type`: integers extended to
// 64 bits by their sign, the rest with zeros.
void TakeLanes(const Warp* warp, uint32_t offset, int width, Type type, ConvertBuffer* buffer);
// The low bits to registers of `width` bytes, for the lanes of `mask`.
void PutLanes(const Warp* warp, uint32_t offset, int width, uint32_t mask,
              const ConvertBuffer& buffer);

// Integers: cut to `to`, or limited to its range first when `saturate`, and extended by its sign.
void ConvertInteger(Type from, Type to, bool saturate, ConvertBuffer* buffer);

// Bits of a floating-point format to doubles, exactly. NaN becomes quiet. `flush`: f32 subnormals
// become zeros.
void BitsToDouble(Type from, bool flush, ConvertBuffer* buffer);
// Integers to doubles; where double has no room, rounded to odd, so that rounding further to any
// format but f64 is right.
void IntegerToDouble(Type from, ConvertBuffer* buffer);
// Integers to f64, rounded once.
void IntegerToF64(Type from, Rounding rounding, ConvertBuffer* buffer);

// Doubles to integral doubles.
void RoundToIntegral(Rounding rounding, ConvertBuffer* buffer);
// Integral doubles to integers, limited to the range of `to`; NaN to `nan`.
void DoubleToInteger(Type to, uint64_t nan, ConvertBuffer* buffer);

// Doubles to [0, 1], NaN to 0; and negative ones to 0.
void SaturatePass(ConvertBuffer* buffer);
void ReluPass(ConvertBuffer* buffer);

enum class FloatFormat : uint8_t { kF16, kBF16, kF32, kTF32, kE4M3, kE5M2 };
// Doubles to the bits of a format. With `finite` what is too large becomes the largest number.
void DoubleToBits(FloatFormat to, Rounding rounding, bool finite, ConvertBuffer* buffer);

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_OPS_CONVERT_PASSES_H_
