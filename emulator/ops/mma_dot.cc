#include "emulator/ops/mma_dot.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "emulator/ops/mma_parts.h"

namespace assay::emulator {
namespace {

constexpr int32_t kShiftMax = 31;

constexpr uint32_t kNanF32 = 0x7fffffff;
constexpr uint32_t kInfinityF32 = 0x7f800000;
constexpr uint32_t kNanF16 = 0x7fff;
constexpr uint32_t kInfinityF16 = 0x7c00;

enum class Rounding { kZeroF32, kZeroE8M13, kNearestF16 };

// How one group of terms is added.
struct Model {
  int fraction_bits = 24;   // kept below the largest exponent
  int terms = 8;            // of a group
  int exponent_min = -132;  // zeros count as this
  Rounding rounding = Rounding::kZeroF32;
  Element addend = Element::kF32;
};

Model ModelOf(const MmaProblem& problem, bool halves) {
  const bool hopper = problem.arch >= 90;
  const int bytes = halves ? 2 : ElementBits(problem.a) / 8;
  Model model;
  model.fraction_bits = hopper ? 25 : 24;
  model.terms = std::min((hopper ? 32 : 16) / bytes, halves ? problem.k / 2 : problem.k);
  const bool half_result = problem.d == Element::kF16 && problem.c == Element::kF16;
  model.exponent_min = (half_result ? -20 : -132) - (hopper ? 1 : 0);
  model.rounding = half_result ? Rounding::kNearestF16 : Rounding::kZeroF32;
  model.addend = half_result ? Element::kF16 : Element::kF32;
  if (IsFp8(problem.a) && !hopper) {
    model.fraction_bits = 13;
    if (!half_result) model.rounding = Rounding::kZeroE8M13;
  }
  return model;
}

// Towards zero, with the bits of `mask` of a float; a zero is positive. The unit of a shorter
// fraction is that of the mask for subnormal numbers too.
inline uint32_t RoundToZero(double value, uint32_t mask) {
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const auto sign = static_cast<uint32_t>(bits >> 63) << 31;
  const auto exponent = static_cast<int32_t>(bits >> 52 & 0x7ff) - (1023 - 127);
  if (exponent >= 255) return sign | kInfinityF32;
  const uint32_t magnitude = exponent > 0 ? static_cast<uint32_t>(exponent) << 23 |
                                                static_cast<uint32_t>(bits >> 29 & 0x7fffff)
                                          : static_cast<uint32_t>(std::fabs(value) * 0x1p149);
  return (magnitude & mask) == 0 ? 0 : sign | (magnitude & mask);
}

// To nearest, ties to even; a zero is positive.
inline uint32_t RoundToF16(double value) {
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const auto sign = static_cast<uint32_t>(bits >> 63) << 15;
  const double magnitude = std::fabs(value);
  if (magnitude >= 65520.0) return sign | kInfinityF16;
  if (magnitude >= 0x1p-14) {
    const uint64_t below = bits & ~(uint64_t{1} << 63);
    const uint64_t rounded = (below + (uint64_t{1} << 41) - 1 + (below >> 42 & 1)) >> 42;
    return sign | static_cast<uint32_t>(rounded - (uint64_t{1023 - 15} << 10));
  }
  const auto rounded = static_cast<uint32_t>(std::nearbyint(magnitude * 0x1p24));
  return rounded == 0 ? 0 : sign | rounded;
}

// A group of one row of A with eight columns of B, and where its parts are.
struct Group {
  const int32_t* a_significand;
  const int32_t* a_exponent;
  const int32_t* b_significand;  // of the first column; the next k is `b_stride` further
  const int32_t* b_exponent;
  int b_stride;
  int terms;
  int shift;  // of a product whose exponent is the largest
};

// Aligned and truncated sums of a group for eight columns.
struct GroupSums {
  DoubleColumns value;   // exact as long as a group has at most 16 terms of at most 2^27
  Columns top;           // the largest exponent
  bool special = false;  // an addend is infinite or not a number: its value is wrong then
};

void AddGroup(const Model& model, const Group& group, const uint32_t* addends, GroupSums* sums) {
  const bool half = model.addend == Element::kF16;
  const int fraction_bits = half ? 10 : 23;
  const int32_t exponent_mask = half ? 0x1f : 0xff;
  const Columns none = {};
  Columns bits;
  LoadColumns(addends, &bits);
  const Columns field = bits >> fraction_bits & exponent_mask;
  const Columns fraction = bits & ((1 << fraction_bits) - 1);
  const Columns addend = field != 0 ? fraction | (1 << fraction_bits) : fraction;
  const Columns addend_exponent = (field != 0 ? field : none + 1) - (half ? 15 : 127);

  Columns top = addend != 0 ? addend_exponent : none + model.exponent_min;
  top = top > model.exponent_min ? top : none + model.exponent_min;
  for (int k = 0; k < group.terms; ++k) {
    Columns exponent;
    LoadColumns(group.b_exponent + k * group.b_stride, &exponent);
    exponent += group.a_exponent[k];
    top = top > exponent ? top : exponent;
  }
  Columns sum = {};
  for (int k = 0; k < group.terms; ++k) {
    Columns exponent;
    LoadColumns(group.b_exponent + k * group.b_stride, &exponent);
    exponent += group.a_exponent[k];
    Columns product;
    LoadColumns(group.b_significand + k * group.b_stride, &product);
    product *= group.a_significand[k];
    const Columns below = top - exponent;
    const Columns cut = below < kShiftMax ? below : none + kShiftMax;
    const Columns sign = product >> 31;
    const Columns magnitude = (((product ^ sign) - sign) << group.shift) >> cut;
    sum += (magnitude ^ sign) - sign;
  }
  const int left = std::max(0, model.fraction_bits - fraction_bits);
  const int right = std::max(0, fraction_bits - model.fraction_bits);
  const Columns below = top - addend_exponent + right;
  const Columns cut = below < kShiftMax ? below : none + kShiftMax;
  const Columns sign = -(bits >> (half ? 15 : 31) & 1);
  const Columns magnitude = (addend << left) >> cut;
  const Columns aligned = (magnitude ^ sign) - sign;
  const LongColumns scale = __builtin_convertvector(top + (1023 - model.fraction_bits), LongColumns)
                            << 52;
  DoubleColumns factor;
  std::memcpy(&factor, &scale, sizeof(factor));
  sums->value = (__builtin_convertvector(sum, DoubleColumns) +
                 __builtin_convertvector(aligned, DoubleColumns)) *
                factor;
  sums->top = top;
  sums->special = AnyColumn(field == exponent_mask);
}

// As RoundToZeroF32 for values that are zero or normal floats, with `cut` low bits of the double
// cut off.
void RoundNormalsToZero(const DoubleColumns& values, int cut, uint32_t* results) {
  LongColumns bits;
  std::memcpy(&bits, &values, sizeof(bits));
  bits &= -(int64_t{1} << cut);
  DoubleColumns kept;
  std::memcpy(&kept, &bits, sizeof(kept));
  const FloatColumns floats = __builtin_convertvector(kept, FloatColumns);
  std::memcpy(results, &floats, sizeof(floats));
}

// As RoundToF16 for values that are zero or normal floats.
void RoundNormalsToF16(const DoubleColumns& values, uint32_t* results) {
  LongColumns bits;
  std::memcpy(&bits, &values, sizeof(bits));
  // A float whose last bit tells of what was cut off rounds as the double does.
  constexpr int64_t kCut = (int64_t{1} << 29) - 1;
  const LongColumns sticky = -((bits & kCut) != 0) << 29;
  bits = (bits & ~kCut) | sticky;
  DoubleColumns kept;
  std::memcpy(&kept, &bits, sizeof(kept));
  const FloatColumns floats = __builtin_convertvector(kept, FloatColumns);
  Columns pattern;
  std::memcpy(&pattern, &floats, sizeof(pattern));
  const Columns magnitude = pattern & 0x7fffffff;
  const Columns normal = (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13;
  // Next to 0.5 the unit of a float is 2^-24, that of the subnormal numbers.
  FloatColumns lifted;
  std::memcpy(&lifted, &magnitude, sizeof(lifted));
  lifted += 0.5f;
  Columns subnormal;
  std::memcpy(&subnormal, &lifted, sizeof(subnormal));
  subnormal -= 0x3f000000;
  const Columns none = {};
  Columns rounded = magnitude < 0x38800000 ? subnormal : normal;
  rounded = magnitude >= 0x477ff000 ? none + static_cast<int32_t>(kInfinityF16) : rounded;
  StoreColumns(rounded != 0 ? rounded | (pattern >> 16 & 0x8000) : none, results);
}

void Round(const Model& model, const GroupSums& sums, uint32_t* results) {
  if (model.rounding == Rounding::kNearestF16) return RoundNormalsToF16(sums.value, results);
  // Above this exponent no sum is subnormal; one that is too large becomes infinite.
  if (!AnyColumn(sums.top < -100)) {
    return RoundNormalsToZero(sums.value, model.rounding == Rounding::kZeroF32 ? 29 : 39, results);
  }
  for (int j = 0; j < kColumns; ++j) {
    results[j] = RoundToZero(sums.value[j], model.rounding == Rounding::kZeroF32 ? ~0u : ~0x3ffu);
  }
}

// What infinities and NaNs make of a sum; kFinite when there are none.
class SpecialSum {
 public:
  void Add(Special value) {
    nan_ |= value == kNan;
    plus_ |= value == kInfinity;
    minus_ |= value == kMinusInfinity;
  }
  void AddProduct(Special a, int32_t a_significand, Special b, int32_t b_significand) {
    if (a == kFinite && b == kFinite) return;
    if (a == kNan || b == kNan) return Add(kNan);
    const bool zero = (a == kFinite && a_significand == 0) || (b == kFinite && b_significand == 0);
    if (zero) return Add(kNan);
    const bool a_minus = a == kMinusInfinity || (a == kFinite && a_significand < 0);
    const bool b_minus = b == kMinusInfinity || (b == kFinite && b_significand < 0);
    Add(a_minus != b_minus ? kMinusInfinity : kInfinity);
  }
  Special result() const {
    if (nan_ || (plus_ && minus_)) return kNan;
    return plus_ ? kInfinity : minus_ ? kMinusInfinity : kFinite;
  }

 private:
  bool nan_ = false;
  bool plus_ = false;
  bool minus_ = false;
};

Special SpecialOf(uint32_t bits, Element element) {
  const Format format =
      element == Element::kF16 ? Format{5, 10, 15, true, false} : Format{8, 23, 127, true, false};
  return TakeApart(bits, format).special;
}

uint32_t SpecialBits(Special value, Element element) {
  const bool half = element == Element::kF16;
  if (value == kNan) return half ? kNanF16 : kNanF32;
  const uint32_t infinity = half ? kInfinityF16 : kInfinityF32;
  return value == kInfinity ? infinity : infinity | 1u << (half ? 15 : 31);
}

// One output after another, for groups in which something is infinite or not a number.
void FixSpecials(const Model& model, const Parts& a, int a_first, const Parts& b, int b_first,
                 int b_stride, const uint32_t* addends, uint32_t* results) {
  for (int j = 0; j < kColumns; ++j) {
    SpecialSum sum;
    sum.Add(SpecialOf(addends[j], model.addend));
    for (int k = 0; k < model.terms; ++k) {
      const int at_a = a_first + k;
      const int at_b = b_first + k * b_stride + j;
      sum.AddProduct(a.SpecialAt(at_a), a.significand[at_a], b.SpecialAt(at_b),
                     b.significand[at_b]);
    }
    if (sum.result() != kFinite) results[j] = SpecialBits(sum.result(), model.addend);
  }
}

// values = a b + values, by groups.
void MultiplyParts(const Model& model, const MmaProblem& problem, const Parts& a, const Parts& b,
                   uint32_t* values) {
  const int shift = model.fraction_bits - a.fraction_bits - b.fraction_bits;
  for (int row = 0; row < problem.rows; ++row) {
    for (int column = 0; column < problem.columns; column += kColumns) {
      uint32_t* const cells = values + row * problem.columns + column;
      for (int k = 0; k < problem.k; k += model.terms) {
        const int at_a = row * problem.k + k;
        const int at_b = k * problem.columns + column;
        const Group group = {a.significand + at_a,
                             a.exponent + at_a,
                             b.significand + at_b,
                             b.exponent + at_b,
                             problem.columns,
                             model.terms,
                             shift};
        GroupSums sums;
        AddGroup(model, group, cells, &sums);
        alignas(32) uint32_t results[kColumns];
        Round(model, sums, results);
        if (sums.special || a.has_special || b.has_special) {
          FixSpecials(model, a, at_a, b, at_b, problem.columns, cells, results);
        }
        std::memcpy(cells, results, sizeof(results));
      }
    }
  }
}

float F16ToFloat(uint32_t bits) {
  const Part part = TakeApart(bits, Format{5, 10, 15, true, false});
  if (part.special != kFinite)
    return std::bit_cast<float>(SpecialBits(part.special, Element::kF32));
  const float magnitude =
      std::ldexp(static_cast<float>(part.significand), std::max(part.exponent, -14) - 10);
  return (bits & 0x8000u) != 0 ? -std::fabs(magnitude) : magnitude;
}

// A float converted, NaN and negative zero included.
uint32_t FloatToF16(float value) {
  if (std::isnan(value)) return kNanF16;
  return RoundToF16(value) | (std::bit_cast<uint32_t>(value) >> 16 & 0x8000u);
}

// values + addends, each rounded to nearest: the add instruction behind the product.
void AddPlain(Element element, int count, const uint32_t* addends, uint32_t* values) {
  for (int i = 0; i < count; ++i) {
    if (element == Element::kF16) {
      const double sum = double{F16ToFloat(values[i])} + double{F16ToFloat(addends[i])};
      const uint32_t zero = std::signbit(sum) ? 0x8000u : 0;
      values[i] = std::isnan(sum) ? kNanF16 : sum == 0 ? zero : RoundToF16(sum);
    } else {
      const float sum = std::bit_cast<float>(values[i]) + std::bit_cast<float>(addends[i]);
      values[i] = std::isnan(sum) ? kNanF32 : std::bit_cast<uint32_t>(sum);
    }
  }
}

}  // namespace

void MultiplyFloat(const MmaProblem& problem, const uint32_t* a, const uint32_t* b,
                   uint32_t* values) {
  const int count = problem.rows * problem.columns;
  const bool halves = IsFp8(problem.a) && problem.arch >= 90;
  const Model model = ModelOf(problem, halves);
  Parts a_parts;
  Parts b_parts;
  TakeApart(a, problem.rows, problem.k, problem.a, halves, problem.k, 1, &a_parts);
  TakeApart(b, problem.columns, problem.k, problem.b, halves, 1, problem.columns, &b_parts);
  if (problem.c == Element::kF16 && problem.d == Element::kF32) {
    for (int i = 0; i < count; ++i) values[i] = std::bit_cast<uint32_t>(F16ToFloat(values[i]));
  }
  if (halves) {
    uint32_t addends[kTileAccumulatorsMax];
    std::copy_n(values, count, addends);
    std::fill_n(values, count, 0u);
    MultiplyParts(model, problem, a_parts, b_parts, values);
    AddPlain(model.addend, count, addends, values);
  } else {
    MultiplyParts(model, problem, a_parts, b_parts, values);
  }
  if (problem.c == Element::kF32 && problem.d == Element::kF16) {
    for (int i = 0; i < count; ++i) values[i] = FloatToF16(std::bit_cast<float>(values[i]));
  }
}

}  // namespace assay::emulator
