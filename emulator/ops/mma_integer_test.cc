// Integer and double-precision products.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <random>
#include <vector>

#include "emulator/ops/mma_dot.h"
#include "gtest/gtest.h"

namespace assay::emulator {
namespace {

int64_t IntegerAt(const std::vector<uint32_t>& words, int index, Element element) {
  const int bits = ElementBits(element);
  const auto value =
      static_cast<int64_t>(words[static_cast<size_t>(index * bits / 32)] >> (index * bits % 32) &
                           ((uint64_t{1} << bits) - 1));
  const bool is_signed = element == Element::kS8 || element == Element::kS4;
  return is_signed && value >= int64_t{1} << (bits - 1) ? value - (int64_t{1} << bits) : value;
}

TEST(MmaInteger, MatchesLongArithmetic) {
  struct IntegerCase {
    Element a, b;
    int k;
  };
  std::mt19937 random(7);
  for (const auto& [a_type, b_type, k] :
       {IntegerCase{Element::kS8, Element::kU8, 32}, IntegerCase{Element::kU8, Element::kU8, 16},
        IntegerCase{Element::kS8, Element::kS8, 32}, IntegerCase{Element::kS4, Element::kU4, 64},
        IntegerCase{Element::kU4, Element::kS4, 32}}) {
    for (const bool saturate : {false, true}) {
      MmaProblem problem;
      problem.rows = 16;
      problem.columns = 8;
      problem.k = k;
      problem.a = a_type;
      problem.b = b_type;
      problem.c = problem.d = Element::kS32;
      problem.saturate = saturate;
      std::vector<uint32_t> a(static_cast<size_t>(16 * k * ElementBits(a_type) / 32));
      std::vector<uint32_t> b(static_cast<size_t>(8 * k * ElementBits(b_type) / 32));
      std::vector<uint32_t> values(128);
      for (uint32_t& word : a) word = static_cast<uint32_t>(random());
      for (uint32_t& word : b) word = static_cast<uint32_t>(random());
      for (uint32_t& value : values)
        value = (random() % 2 == 0 ? 0x7ffff000u : 0x80000fffu) ^ random() % 4096;
      const std::vector<uint32_t> addends = values;
      MultiplyInteger(problem, a.data(), b.data(), values.data());
      for (int at = 0; at < 128; ++at) {
        int64_t sum = static_cast<int32_t>(addends[static_cast<size_t>(at)]);
        for (int i = 0; i < k; ++i) {
          sum += IntegerAt(a, at / 8 * k + i, a_type) * IntegerAt(b, at % 8 * k + i, b_type);
        }
        if (saturate) sum = std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX);
        ASSERT_EQ(values[static_cast<size_t>(at)], static_cast<uint32_t>(sum))
            << ElementName(a_type) << " " << ElementName(b_type) << " k " << k << " at " << at;
      }
    }
  }
}

TEST(MmaInteger, CountsBits) {
  for (const BitProduct product : {BitProduct::kXor, BitProduct::kAnd}) {
    MmaProblem problem;
    problem.rows = 8;
    problem.columns = 8;
    problem.k = 256;
    problem.a = problem.b = Element::kB1;
    problem.product = product;
    std::mt19937 random(3);
    std::vector<uint32_t> a(64);
    std::vector<uint32_t> b(64);
    for (uint32_t& word : a) word = static_cast<uint32_t>(random());
    for (uint32_t& word : b) word = static_cast<uint32_t>(random());
    std::vector<uint32_t> values(64, 5);
    MultiplyInteger(problem, a.data(), b.data(), values.data());
    for (int at = 0; at < 64; ++at) {
      uint32_t count = 5;
      for (int i = 0; i < 256; ++i) {
        const int64_t x = IntegerAt(a, at / 8 * 256 + i, Element::kB1);
        const int64_t y = IntegerAt(b, at % 8 * 256 + i, Element::kB1);
        count += product == BitProduct::kXor ? x != y : x == 1 && y == 1;
      }
      ASSERT_EQ(values[static_cast<size_t>(at)], count);
    }
  }
}

TEST(MmaDouble, IsAChainInTheOrderOfK) {
  MmaProblem problem;
  problem.rows = 8;
  problem.columns = 8;
  problem.k = 4;
  std::vector<uint64_t> a(32);
  std::vector<uint64_t> b(32, std::bit_cast<uint64_t>(1.0));
  std::vector<uint64_t> values(64);
  // 1 + 2^60 - 2^60: the one is lost, and the last term is not.
  const double row[] = {1.0, 0x1p60, -0x1p60, 0.5};
  for (size_t k = 0; k < 4; ++k) a[k] = std::bit_cast<uint64_t>(row[k]);
  MultiplyDouble(problem, a.data(), b.data(), values.data());
  EXPECT_EQ(std::bit_cast<double>(values[0]), 0.5);
  // A product that needs more than 53 bits is not rounded before it is added.
  a[8] = b[8] = std::bit_cast<uint64_t>(1 + 0x1p-52);
  a[9] = std::bit_cast<uint64_t>(0.0);
  values[2 * 8 + 2] = std::bit_cast<uint64_t>(-1.0 - 0x1p-51);
  MultiplyDouble(problem, a.data(), b.data(), values.data());
  EXPECT_EQ(std::bit_cast<double>(values[2 * 8 + 2]), 0x1p-104);
}

}  // namespace
}  // namespace assay::emulator
