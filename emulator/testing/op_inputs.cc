#include "emulator/testing/op_inputs.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

namespace assay::emulator {
namespace {

int BitsOf(ValueKind kind) {
  switch (kind) {
    case ValueKind::kBits8:
      return 8;
    case ValueKind::kBits16:
    case ValueKind::kF16:
    case ValueKind::kBF16:
      return 16;
    case ValueKind::kBits64:
    case ValueKind::kF64:
      return 64;
    case ValueKind::kPredicate:
      return 1;
    default:
      return 32;
  }
}

std::vector<uint64_t> IntegerValues(int bits) {
  const uint64_t ones = ~uint64_t{0} >> (64 - bits);
  std::vector<uint64_t> values = {0, 1, 2, 3, 5, 7, 10, 0x55, 0x7f, 0x80, 0xff};
  for (int power = 4; power<bits; power += bits> 32 ? 7 : 4) {
    for (const int64_t off : {-1, 0, 1}) {
      values.push_back((uint64_t{1} << power) + static_cast<uint64_t>(off));
    }
  }
  const uint64_t top = uint64_t{1} << (bits - 1);
  for (const uint64_t value : {top - 1, top, top + 1, ones, ones - 1, ones - 2, ones - 6}) {
    values.push_back(value);
  }
  values.push_back(0x0123456789abcdef);
  values.push_back(0xaaaaaaaa55555555);
  for (uint64_t& value : values) value &= ones;
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

// `fraction` bits after the point and `exponent` bits.
std::vector<uint64_t> FloatValues(int fraction, int exponent) {
  const uint64_t sign = uint64_t{1} << (fraction + exponent);
  const uint64_t infinity = ((uint64_t{1} << exponent) - 1) << fraction;
  const uint64_t bias = (uint64_t{1} << (exponent - 1)) - 1;
  const uint64_t unit = uint64_t{1} << fraction;
  const uint64_t half = unit >> 1;
  std::vector<uint64_t> values = {
      0, 1, 2, 3, half, unit - 1, unit, unit + 1, infinity, infinity - 1, infinity - 2};
  // NaN: quiet, with payload, and signalling.
  for (const uint64_t nan :
       {infinity + half, infinity + half + 5, infinity + 1, infinity + unit - 1}) {
    values.push_back(nan);
  }
  // Numbers around powers of two, near 1 and where fractions and integer ranges end.
  const int powers[] = {-30, -25, -24, -15, -14, -2, -1, 0,  1,  2,  7,    8,   15,
                        16,  23,  24,  31,  32,  52, 53, 62, 63, 64, -126, 126, 127};
  for (const int power : powers) {
    const int64_t biased = static_cast<int64_t>(bias) + power;
    if (biased < 1 || biased >= (int64_t{1} << exponent) - 1) continue;
    const uint64_t one = static_cast<uint64_t>(biased) << fraction;
    for (const uint64_t bits : {one - 1, one, one + 1, one + half, one + half + (half >> 1)}) {
      values.push_back(bits);
    }
  }
  const size_t positive = values.size();
  for (size_t i = 0; i < positive; ++i) values.push_back(values[i] | sign);
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

std::vector<uint64_t> Pairs(const std::vector<uint64_t>& halves) {
  std::vector<uint64_t> values;
  for (size_t i = 0; i < halves.size(); ++i) {
    values.push_back(halves[i] << 16 | halves[(i * 37 + 11) % halves.size()]);
  }
  return values;
}

bool IsFloatKind(ValueKind kind) {
  switch (kind) {
    case ValueKind::kF16:
    case ValueKind::kBF16:
    case ValueKind::kF32:
    case ValueKind::kF64:
    case ValueKind::kF16x2:
    case ValueKind::kBF16x2:
      return true;
    default:
      return false;
  }
}

uint64_t RandomValue(ValueKind kind, uint64_t previous, std::mt19937_64* random) {
  const uint64_t bits = (*random)();
  const uint64_t ones = ~uint64_t{0} >> (64 - BitsOf(kind));
  switch (kind) {
    case ValueKind::kPredicate:
      return bits & 1;
    case ValueKind::kShift:
      return bits >> 40 & 1 ? bits % 70 : bits & ones;
    default:
      break;
  }
  switch ((*random)() % 8) {
    case 0:
      return (previous ^ (bits & 15)) & ones;  // a near neighbour
    case 1:
      // Few bits set: ties, and integers held exactly.
      return bits & (*random)() & (*random)() & ones;
    case 2:
      return IsFloatKind(kind) ? (previous ^ uint64_t{1} << (BitsOf(kind) - 1)) & ones
                               : bits >> (bits & 63) & ones;
    case 3: {
      // The exponent of the previous one, near enough.
      if (kind == ValueKind::kF32) {
        return ((previous & 0xff800000u) + (bits & 0x007fffffu) + ((bits >> 60) << 23)) & ones;
      }
      if (kind == ValueKind::kF64) {
        return (previous & 0xfff0000000000000u) + (bits & 0x000fffffffffffffu);
      }
      return bits & ones;
    }
    default:
      return bits & ones;
  }
}

}  // namespace

std::vector<uint64_t> SpecialValues(ValueKind kind) {
  switch (kind) {
    case ValueKind::kBits8:
    case ValueKind::kBits16:
    case ValueKind::kBits32:
    case ValueKind::kBits64:
      return IntegerValues(BitsOf(kind));
    case ValueKind::kF16:
      return FloatValues(10, 5);
    case ValueKind::kBF16:
      return FloatValues(7, 8);
    case ValueKind::kF32:
      return FloatValues(23, 8);
    case ValueKind::kF64:
      return FloatValues(52, 11);
    case ValueKind::kF16x2:
      return Pairs(FloatValues(10, 5));
    case ValueKind::kBF16x2:
      return Pairs(FloatValues(7, 8));
    case ValueKind::kShift:
      return {0,  1,  5,  8,  15,  16,  17,  30,  31,         32,         33,
              40, 63, 64, 65, 127, 128, 255, 256, 0x80000000, 0xffffffff, 0xffffffe0};
    case ValueKind::kPredicate:
      return {0, 1};
  }
  return {};
}

std::vector<OpInputs> MakeInputs(const std::vector<ValueKind>& kinds, size_t crossed_max,
                                 size_t random, uint64_t seed) {
  std::mt19937_64 source(seed);
  std::vector<std::vector<uint64_t>> values;
  size_t combinations = 1;
  for (const ValueKind kind : kinds) {
    values.push_back(SpecialValues(kind));
    combinations *= values.back().size();
  }
  std::vector<OpInputs> inputs;
  const bool all = combinations <= crossed_max;
  for (size_t i = 0; i < std::min(combinations, crossed_max); ++i) {
    size_t rest = all ? i : source() % combinations;
    OpInputs one = {};
    for (size_t k = 0; k < kinds.size(); ++k) {
      one[k] = values[k][rest % values[k].size()];
      rest /= values[k].size();
    }
    inputs.push_back(one);
  }
  for (size_t i = 0; i < random; ++i) {
    OpInputs one = {};
    uint64_t previous = source();
    for (size_t k = 0; k < kinds.size(); ++k) {
      one[k] = RandomValue(kinds[k], previous, &source);
      previous = one[k];
    }
    inputs.push_back(one);
  }
  return inputs;
}

}  // namespace assay::emulator
