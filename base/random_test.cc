#include "base/random.h"

#include <set>

#include "gtest/gtest.h"

namespace assay {
namespace {

TEST(Random, SameSeedSameSequence) {
  Random a(42), b(42), c(43);
  for (int i = 0; i < 100; ++i) {
    const uint64_t value = a();
    EXPECT_EQ(value, b());
    EXPECT_NE(value, c());
  }
}

TEST(Random, BelowCoversItsRangeAndStaysInIt) {
  Random random(1);
  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    const uint64_t value = random.Below(7);
    ASSERT_LT(value, 7u);
    seen.insert(value);
  }
  EXPECT_EQ(seen.size(), 7u);
}

TEST(Random, SecureValuesDiffer) {
  EXPECT_NE(SecureRandom64(), SecureRandom64());
  EXPECT_EQ(SecureRandomHex(5).size(), 10u);
}

}  // namespace
}  // namespace assay
