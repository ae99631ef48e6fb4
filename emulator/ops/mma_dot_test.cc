#include "emulator/ops/mma_dot.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"

namespace assay::emulator {
namespace {

// The model in double precision, scalar by scalar: every intermediate value is exact there.
namespace exact {

struct Number {
  double value = 0;
  int exponent = -1000;  // that the hardware aligns by
};

struct Layout {
  int exponent_bits;
  int fraction_bits;
  bool ieee;
};

Layout LayoutOf(Element element) {
  switch (element) {
    case Element::kF16:
      return {5, 10, true};
    case Element::kBF16:
      return {8, 7, true};
    case Element::kTF32:
      return {8, 10, true};
    case Element::kE5M2:
      return {5, 2, true};
    case Element::kE4M3:
      return {4, 3, false};
    default:
      return {8, 23, true};
  }
}

double Decode(uint32_t bits, Element element) {
  const Layout layout = LayoutOf(element);
  const int steps = 1 << layout.fraction_bits;
  const int fraction = static_cast<int>(bits) & (steps - 1);
  const int field =
      static_cast<int>(bits >> layout.fraction_bits) & ((1 << layout.exponent_bits) - 1);
  const int bias = (1 << (layout.exponent_bits - 1)) - 1;
  const double sign = (bits >> (layout.fraction_bits + layout.exponent_bits) & 1) != 0 ? -1 : 1;
  const bool last = field == (1 << layout.exponent_bits) - 1;
  if (last && layout.ieee) return fraction == 0 ? sign * INFINITY : NAN;
  if (last && fraction == steps - 1) return NAN;
  if (field == 0) return sign * std::ldexp(fraction, 1 - bias - layout.fraction_bits);
  return sign * std::ldexp(1.0 + static_cast<double>(fraction) / steps, field - bias);
}

Number Aligned(uint32_t bits, Element element) {
  const double value = Decode(bits, element);
  if (value == 0 || !std::isfinite(value)) return {value, -1000};
  const int least = 2 - (1 << (LayoutOf(element).exponent_bits - 1));
  return {value, std::max(std::ilogb(value), least)};
}

double Truncate(double value, double unit) { return std::trunc(value / unit) * unit; }

uint32_t ToF32(double value, bool short_fraction) {
  if (std::isnan(value)) return 0x7fffffff;
  float rounded = static_cast<float>(value);
  if (std::isinf(value) || std::fabs(value) >= 0x1p128) {
    rounded = value > 0 ? INFINITY : -INFINITY;
  } else if (std::fabs(static_cast<double>(rounded)) > std::fabs(value)) {
    rounded = std::nextafterf(rounded, 0.0f);
  }
  if (short_fraction && std::isfinite(rounded)) {
    const int exponent = rounded == 0 ? 0 : std::max(std::ilogb(rounded), -126);
    rounded = static_cast<float>(Truncate(rounded, std::ldexp(1.0, exponent - 13)));
  }
  return rounded == 0 ? 0 : std::bit_cast<uint32_t>(rounded);
}

// By search among all numbers of the format.
uint32_t ToF16(double value) {
  if (std::isnan(value)) return 0x7fff;
  const uint32_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(value);
  if (magnitude >= 65520) return sign | 0x7c00;
  uint32_t low = 0;
  uint32_t high = 0x7bff;
  while (low < high) {
    const uint32_t middle = (low + high + 1) / 2;
    if (Decode(middle, Element::kF16) <= magnitude) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  const double below = Decode(low, Element::kF16);
  const double above = low == 0x7bff ? 65536.0 : Decode(low + 1, Element::kF16);
  const double middle = (below + above) / 2;
  if (magnitude > middle || (magnitude == middle && low % 2 == 1)) ++low;
  return low == 0 ? 0 : sign | low;
}

struct Rules {
  int kept;   // fraction bits below the largest exponent
  int group;  // terms
  int least;  // exponent
  bool f16;   // result
  bool short_fraction;
};

uint32_t Dot(const Rules& rules, const std::vector<uint32_t>& a, Element a_type,
             const std::vector<uint32_t>& b, Element b_type, uint32_t c) {
  const Element sum_type = rules.f16 ? Element::kF16 : Element::kF32;
  for (size_t first = 0; first < a.size(); first += static_cast<size_t>(rules.group)) {
    std::vector<Number> terms = {Aligned(c, sum_type)};
    for (size_t k = first; k < first + static_cast<size_t>(rules.group); ++k) {
      const Number x = Aligned(a[k], a_type);
      const Number y = Aligned(b[k], b_type);
      terms.push_back({x.value * y.value, x.exponent + y.exponent});
    }
    int top = rules.least;
    double plain = 0;
    for (const Number& term : terms) {
      plain += term.value;
      if (term.value != 0) top = std::max(top, term.exponent);
    }
    double sum = plain;
    if (std::isfinite(plain)) {
      sum = 0;
      for (const Number& term : terms)
        sum += Truncate(term.value, std::ldexp(1.0, top - rules.kept));
    }
    c = rules.f16 ? ToF16(sum) : ToF32(sum, rules.short_fraction);
  }
  return c;
}

}  // namespace exact

struct Case {
  Element a;
  Element b;
  int k;
  bool f16;
  int arch;
};

std::string NameOf(const Case& c) {
  return std::string(ElementName(c.a)) + "_" + std::string(ElementName(c.b)) + "_k" +
         std::to_string(c.k) + (c.f16 ? "_f16" : "_f32") + "_sm" + std::to_string(c.arch);
}

exact::Rules RulesOf(const Case& c) {
  const bool hopper = c.arch >= 90;
  const int bytes = std::max(1, ElementBits(c.a) / 8);
  exact::Rules rules = {hopper ? 25 : 24, std::min(c.k, (hopper ? 32 : 16) / bytes),
                        (c.f16 ? -20 : -132) - (hopper ? 1 : 0), c.f16, false};
  if (IsFp8(c.a)) {
    rules.kept = 13;
    rules.short_fraction = !c.f16;
  }
  return rules;
}

// Numbers of every kind: near one, of any exponent, zeros, subnormals, and with `special`
// infinities and NaNs.
class Draw {
 public:
  explicit Draw(uint32_t seed) : random_(seed) {}
  uint32_t operator()(Element element, bool special) {
    const exact::Layout layout = exact::LayoutOf(element);
    const int bits = 1 + layout.exponent_bits + layout.fraction_bits;
    const uint32_t any =
        static_cast<uint32_t>(random_()) & static_cast<uint32_t>((uint64_t{1} << bits) - 1);
    const uint32_t exponent_mask = ((1u << layout.exponent_bits) - 1) << layout.fraction_bits;
    const uint32_t bias = (1u << (layout.exponent_bits - 1)) - 1;
    switch (random_() % 8) {
      case 0:
        return 0;
      case 1:
        return any & ~exponent_mask;
      case 2:
        return special && random_() % 4 == 0 ? any | exponent_mask : Finite(any, element);
      case 3:
        return Finite(any, element);
      default:
        return (any & ~exponent_mask) | (bias + static_cast<uint32_t>(random_() % 7) - 3)
                                            << layout.fraction_bits;
    }
  }

 private:
  uint32_t Finite(uint32_t any, Element element) {
    while (!std::isfinite(exact::Decode(any, element))) {
      any ^= 1u << exact::LayoutOf(element).fraction_bits;
    }
    return any;
  }
  std::mt19937 random_;
};

uint32_t Pack(const std::vector<uint32_t>& elements, size_t first, Element element) {
  if (element == Element::kTF32) return elements[first] << 13;
  const int bits = ElementBits(element);
  uint32_t word = 0;
  for (int i = 0; i < 32 / bits; ++i)
    word |= elements[first + static_cast<size_t>(i)] << (i * bits);
  return word;
}

std::vector<uint32_t> PackAll(const std::vector<uint32_t>& elements, Element element) {
  std::vector<uint32_t> words;
  for (size_t i = 0; i < elements.size(); i += static_cast<size_t>(32 / ElementBits(element))) {
    words.push_back(Pack(elements, i, element));
  }
  return words;
}

MmaProblem ProblemOf(const Case& c) {
  MmaProblem problem;
  problem.rows = 16;
  problem.columns = 8;
  problem.k = c.k;
  problem.a = c.a;
  problem.b = c.b;
  problem.c = problem.d = c.f16 ? Element::kF16 : Element::kF32;
  problem.arch = c.arch;
  return problem;
}

std::vector<uint32_t> Slice(const std::vector<uint32_t>& from, int index, int length) {
  const auto begin = from.begin() + static_cast<ptrdiff_t>(index) * length;
  return {begin, begin + length};
}

class MmaDot : public testing::TestWithParam<Case> {};

TEST_P(MmaDot, MatchesTheExactModel) {
  const Case c = GetParam();
  const MmaProblem problem = ProblemOf(c);
  const exact::Rules rules = RulesOf(c);
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Draw draw(seed);
    const bool special = seed % 3 == 0;
    std::vector<uint32_t> a;
    std::vector<uint32_t> b;
    std::vector<uint32_t> values;
    for (int i = 0; i < problem.rows * c.k; ++i) a.push_back(draw(c.a, special));
    for (int i = 0; i < problem.columns * c.k; ++i) b.push_back(draw(c.b, special));
    for (int i = 0; i < problem.rows * problem.columns; ++i) {
      values.push_back(draw(problem.c, special));
    }
    const std::vector<uint32_t> addends = values;
    MultiplyFloat(problem, PackAll(a, c.a).data(), PackAll(b, c.b).data(), values.data());
    for (int row = 0; row < problem.rows; ++row) {
      for (int column = 0; column < problem.columns; ++column) {
        const auto at = static_cast<size_t>(row * problem.columns + column);
        ASSERT_EQ(values[at], exact::Dot(rules, Slice(a, row, c.k), c.a, Slice(b, column, c.k), c.b,
                                         addends[at]))
            << "row " << row << " column " << column;
      }
    }
  }
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const int arch : {75, 80, 89, 90}) {
    for (const int k : {8, 16}) {
      cases.push_back({Element::kF16, Element::kF16, k, false, arch});
      cases.push_back({Element::kF16, Element::kF16, k, true, arch});
      cases.push_back({Element::kBF16, Element::kBF16, k, false, arch});
    }
    for (const int k : {4, 8}) cases.push_back({Element::kTF32, Element::kTF32, k, false, arch});
  }
  for (const int k : {16, 32}) {
    for (const bool f16 : {false, true}) {
      for (const Element a : {Element::kE4M3, Element::kE5M2}) {
        for (const Element b : {Element::kE4M3, Element::kE5M2})
          cases.push_back({a, b, k, f16, 89});
      }
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, MmaDot, testing::ValuesIn(Cases()),
                         [](const auto& info) { return NameOf(info.param); });

// One output of a product whose first row and column are given, the rest being zero.
uint32_t First(const Case& c, std::vector<uint32_t> a, std::vector<uint32_t> b, uint32_t addend) {
  const MmaProblem problem = ProblemOf(c);
  a.resize(static_cast<size_t>(problem.rows * c.k));
  b.resize(static_cast<size_t>(problem.columns * c.k));
  std::vector<uint32_t> values(static_cast<size_t>(problem.rows * problem.columns));
  values[0] = addend;
  MultiplyFloat(problem, PackAll(a, c.a).data(), PackAll(b, c.b).data(), values.data());
  return values[0];
}

constexpr uint32_t kHalfOne = 0x3c00;
constexpr uint32_t kOne = 0x3f800000;

TEST(MmaDotKnown, KeepsTwentyFourBitsOnAmpereAndTwentyFiveOnHopper) {
  // 1 - 2^-25 comes out of products 2^-13 * -2^-12; below the kept bits it is cut off.
  const auto minus = [](int arch, uint32_t small) {
    return First({Element::kF16, Element::kF16, 8, false, arch}, {small}, {0x0c00 | 0x8000}, kOne);
  };
  const uint32_t p12 = 0x0c00;             // 2^-12
  const uint32_t p13 = 0x0800;             // 2^-13
  EXPECT_EQ(minus(80, p12), 0x3f7fffffu);  // 1 - 2^-24 is a float
  EXPECT_EQ(minus(90, p12), 0x3f7fffffu);
  EXPECT_EQ(minus(80, p13), kOne);         // -2^-25 is cut off
  EXPECT_EQ(minus(90, p13), 0x3f7fffffu);  // kept, and the sum is rounded towards zero
}

TEST(MmaDotKnown, AddsEachHalfOfTheRowByItself) {
  // 2^10 in the first half is taken away in the second; 2^-14 meets it in the first or not.
  const uint32_t big = 0x6400;
  const uint32_t tiny = 0x0400;
  std::vector<uint32_t> a(16);
  std::vector<uint32_t> b(16, kHalfOne);
  a[0] = big;
  a[1] = tiny;
  a[8] = big | 0x8000;
  // Each product with 2^10 is 2^20 when b is 2^10, so that 2^-14 lies 34 bits below.
  b[0] = b[8] = big;
  EXPECT_EQ(First({Element::kF16, Element::kF16, 16, false, 80}, a, b, 0), 0u);
  std::swap(a[1], a[9]);
  EXPECT_EQ(First({Element::kF16, Element::kF16, 16, false, 80}, a, b, 0), 0u);
  a[9] = kHalfOne;
  // One survives in the second half alone: 2^20 and 1 are 20 bits apart.
  EXPECT_EQ(First({Element::kF16, Element::kF16, 16, false, 80}, a, b, 0), kOne);
}

TEST(MmaDotKnown, ZerosHaveAnExponentToo) {
  // 2^-25 is half of the smallest half, and 2^-46 decides the tie where it is kept: 24 bits below
  // the 2^-20 that a zero addend counts as it is not, 25 bits below 2^-21 it is.
  const std::vector<uint32_t> a = {0x0800, 0x0002};
  const std::vector<uint32_t> b = {0x0c00, 0x0002};
  EXPECT_EQ(First({Element::kF16, Element::kF16, 8, true, 80}, a, b, 0), 0u);
  EXPECT_EQ(First({Element::kF16, Element::kF16, 8, true, 90}, a, b, 0), 1u);
}

TEST(MmaDotKnown, Specials) {
  const Case f32 = {Element::kF16, Element::kF16, 16, false, 80};
  const Case f16 = {Element::kF16, Element::kF16, 16, true, 80};
  const uint32_t inf = 0x7c00;
  EXPECT_EQ(First(f32, {inf}, {kHalfOne}, 0), 0x7f800000u);
  EXPECT_EQ(First(f32, {inf}, {kHalfOne | 0x8000}, 0), 0xff800000u);
  EXPECT_EQ(First(f32, {inf}, {0}, 0), 0x7fffffffu);
  EXPECT_EQ(First(f32, {inf, inf | 0x8000}, {kHalfOne, kHalfOne}, 0), 0x7fffffffu);
  EXPECT_EQ(First(f32, {kHalfOne}, {kHalfOne}, 0xff800000), 0xff800000u);
  EXPECT_EQ(First(f32, {kHalfOne}, {kHalfOne}, 0xffc12345), 0x7fffffffu);
  EXPECT_EQ(First(f16, {0x7e01}, {kHalfOne}, 0), 0x7fffu);
  EXPECT_EQ(First(f16, {0x7bff}, {0x4000}, 0), 0x7c00u);
  // A zero sum is positive whatever its terms.
  EXPECT_EQ(First(f32, {0x8000}, {kHalfOne}, 0x80000000), 0u);
  EXPECT_EQ(First(f16, {kHalfOne, kHalfOne | 0x8000}, {kHalfOne, kHalfOne}, 0x8000), 0u);
  // A tf32 NaN whose payload is cut off is an infinity.
  MmaProblem tf32 = ProblemOf({Element::kTF32, Element::kTF32, 4, false, 80});
  std::vector<uint32_t> a(64);
  std::vector<uint32_t> b(32, kOne);
  std::vector<uint32_t> values(128);
  a[0] = 0x7f800001;
  a[4] = 0x3f801fff;
  MultiplyFloat(tf32, a.data(), b.data(), values.data());
  EXPECT_EQ(values[0], 0x7f800000u);
  EXPECT_EQ(values[8], kOne);
}

TEST(MmaDotKnown, HopperTakesFp8AsF16AndAddsC) {
  // Terms k % 4 < 2 are one product and the others the next, without c, which is added and rounded
  // to nearest: 1 + 2^-24 is a tie, which would be cut off otherwise, and 1 + 3 * 2^-24 rounds up.
  const Case c = {Element::kE5M2, Element::kE5M2, 32, false, 90};
  const uint32_t p12 = 0x0c;  // 2^-12
  const auto at = [](int k, uint32_t value) {
    std::vector<uint32_t> row(32);
    row[static_cast<size_t>(k)] = value;
    return row;
  };
  EXPECT_EQ(First(c, at(0, p12), at(0, p12), kOne), kOne);
  std::vector<uint32_t> three = at(0, p12);
  three[1] = three[2] = p12;
  EXPECT_EQ(First(c, three, three, kOne), 0x3f800002u);
  // 2^28 and 1 are in the same product or in different ones, and so is what takes 2^28 away.
  const uint32_t one = 0x3c;
  const uint32_t p14 = 0x74;
  std::vector<uint32_t> a = at(0, p14);
  std::vector<uint32_t> b = at(0, p14);
  a[1] = p14 | 0x80;
  b[1] = p14;
  a[2] = b[2] = one;
  EXPECT_EQ(First(c, a, b, 0), kOne);
  std::swap(a[2], a[4]);
  std::swap(b[2], b[4]);
  EXPECT_EQ(First(c, a, b, 0), 0u);
  // Half results too.
  EXPECT_EQ(First({Element::kE5M2, Element::kE5M2, 16, true, 90}, at(0, one), at(0, one), 0x3c00),
            0x4000u);
}

TEST(MmaDotKnown, HopperGivesSubnormalFp8TheExponentOfF16) {
  // 2^-9 is subnormal in e4m3 and normal in f16: beside 2^-9 * 2^15 = 2^6 the bit 2^-19 is kept.
  EXPECT_EQ(First({Element::kE4M3, Element::kE5M2, 16, false, 90}, {0x01, 0x81}, {0x78, 0x14}, 0),
            0x427fffffu);
}

TEST(MmaDotKnown, TinyNegativeSumsBecomePositiveZero) {
  const uint32_t p76 = (127 - 76) << 7;
  EXPECT_EQ(First({Element::kBF16, Element::kBF16, 8, false, 80}, {p76}, {p76 | 0x8000}, 0), 0u);
  const uint32_t p70 = (127 - 70) << 7;
  EXPECT_EQ(First({Element::kBF16, Element::kBF16, 8, false, 80}, {p70}, {p70 | 0x8000}, 0),
            0x80000200u);
}

TEST(MmaDotKnown, LargeSumsBecomeInfinite) {
  const uint32_t p127 = 254 << 7;
  const uint32_t one = 127 << 7;
  const Case c = {Element::kBF16, Element::kBF16, 8, false, 80};
  EXPECT_EQ(First(c, {p127, p127}, {one, one}, 0), 0x7f800000u);
  EXPECT_EQ(First(c, {p127, p127}, {one, one}, 0xcb800000), 0x7f800000u);  // 2^128 - 2^24
  // 2^128 - 2^103 is cut off to the largest float.
  EXPECT_EQ(First(c, {p127, p127}, {one, one}, 0xf3000000), 0x7f7fffffu);
  EXPECT_EQ(First(c, {p127, p127}, {one | 0x8000, one | 0x8000}, 0), 0xff800000u);
  EXPECT_EQ(First(c, {p127}, {p127}, 0), 0x7f800000u);
}

TEST(MmaDotKnown, MixedAccumulatorsAreConverted) {
  MmaProblem problem = ProblemOf({Element::kF16, Element::kF16, 16, false, 80});
  std::vector<uint32_t> a(16 * 8);
  std::vector<uint32_t> b(8 * 8);
  a[0] = b[0] = kHalfOne;
  std::vector<uint32_t> values(128, 0x8001);
  problem.c = Element::kF16;
  MultiplyFloat(problem, a.data(), b.data(), values.data());
  EXPECT_EQ(values[0], std::bit_cast<uint32_t>(1.0f - 0x1p-24f));
  EXPECT_EQ(values[1], std::bit_cast<uint32_t>(-0x1p-24f));
  problem.c = Element::kF32;
  problem.d = Element::kF16;
  values.assign(128, std::bit_cast<uint32_t>(0x1.8p-11f));
  values[2] = 0xffc00000;
  MultiplyFloat(problem, a.data(), b.data(), values.data());
  EXPECT_EQ(values[0], 0x3c01u);  // 1 + 3 * 2^-12 lies nearer to 1 + 2^-10 than to 1
  EXPECT_EQ(values[1], 0x1200u);
  EXPECT_EQ(values[2], 0x7fffu);
}

}  // namespace
}  // namespace assay::emulator
