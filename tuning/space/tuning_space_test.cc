#include "tuning/space/tuning_space.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "base/random.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int64_t> UpTo(int64_t first, int64_t last) {
  std::vector<int64_t> values;
  for (int64_t value = first; value <= last; ++value) values.push_back(value);
  return values;
}

// All valid points, by trying every combination.
std::set<SpacePoint> BruteForce(const std::vector<SpaceParameter>& parameters,
                                const std::vector<std::string>& constraints) {
  std::vector<Expression> parsed;
  for (const std::string& text : constraints) parsed.push_back(*Expression::Parse(text));
  std::set<SpacePoint> valid;
  SpacePoint point(parameters.size());
  while (true) {
    ValueMap values;
    for (size_t p = 0; p < point.size(); ++p) {
      values[parameters[p].name] = parameters[p].values[point[p]];
    }
    if (std::all_of(parsed.begin(), parsed.end(), [&](const Expression& one) {
          const auto value = one.Evaluate(values);
          return value.ok() && *value != 0;
        })) {
      valid.insert(point);
    }
    size_t p = 0;
    while (p < point.size() && ++point[p] == parameters[p].values.size()) point[p++] = 0;
    if (p == point.size()) return valid;
  }
}

void ExpectSame(const TuningSpace& space, const std::set<SpacePoint>& valid) {
  ASSERT_EQ(space.size(), valid.size());
  std::set<SpacePoint> seen;
  for (uint64_t i = 0; i < space.size(); ++i) {
    const SpacePoint point = space.At(i);
    seen.insert(point);
    EXPECT_EQ(space.IndexOf(point), i);
  }
  EXPECT_EQ(seen, valid);
  for (const SpacePoint& point : valid) {
    std::set<SpacePoint> neighbours;
    for (const SpacePoint& other : valid) {
      int differences = 0;
      for (size_t p = 0; p < point.size(); ++p) differences += point[p] != other[p];
      if (differences == 1) neighbours.insert(other);
    }
    const std::vector<SpacePoint> found = space.Neighbours(point);
    EXPECT_EQ(std::set<SpacePoint>(found.begin(), found.end()), neighbours);
    EXPECT_EQ(found.size(), neighbours.size());
    EXPECT_THAT(*space.PointOf(space.ValuesOf(point)), ::testing::ContainerEq(point));
  }
}

TEST(TuningSpaceTest, HoldsWhatTryingEverythingFinds) {
  const uint64_t seed = 20261201;
  Random random(seed);
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(absl::StrCat("seed ", seed, ", round ", round));
    std::vector<SpaceParameter> parameters;
    const size_t count = 1 + random.Below(5);
    for (size_t p = 0; p < count; ++p) {
      SpaceParameter& one = parameters.emplace_back();
      one.name = absl::StrCat("p", p);
      // In no order.
      const uint64_t length = 1 + random.Below(4);
      for (uint64_t value = 0; value < length; ++value) {
        one.values.push_back(static_cast<int64_t>((value * 7 + 3) % 11) - 2);
      }
    }
    std::vector<std::string> constraints;
    const char* const forms[] = {"$0 * $1 <= 8", "$0 + $1 != 3", "$0 % $1 == 0", "$0 > 0 || $1 < 4",
                                 "$0 < 6"};
    for (uint64_t c = random.Below(4); c > 0; --c) {
      constraints.push_back(absl::Substitute(forms[random.Below(std::size(forms))],
                                             parameters[random.Below(count)].name,
                                             parameters[random.Below(count)].name));
    }
    const std::set<SpacePoint> valid = BruteForce(parameters, constraints);
    const absl::StatusOr<TuningSpace> space = TuningSpace::Open(parameters, constraints, {});
    if (valid.empty()) {
      EXPECT_THAT(space, HasReason("SPACE_EMPTY"));
      continue;
    }
    ASSERT_OK(space);
    ExpectSame(*space, valid);
  }
}

// Two groups that know nothing of each other, and one parameter that is free: 10^9 combinations.
TEST(TuningSpaceTest, CountsWhatNobodyCouldList) {
  std::vector<SpaceParameter> parameters;
  for (int p = 0; p < 9; ++p) parameters.push_back({absl::StrCat("p", p), UpTo(1, 10)});
  ASSERT_OK_AND_ASSIGN(
      const TuningSpace space,
      TuningSpace::Open(parameters, {"p0 * p1 <= limit", "p5 < p6 && p6 < p7"}, {{"limit", 20}}));
  EXPECT_EQ(space.combination_count(), 1e9);
  uint64_t products = 0;
  for (int64_t a = 1; a <= 10; ++a)
    products += static_cast<uint64_t>(std::min<int64_t>(10, 20 / a));
  EXPECT_EQ(space.size(), products * 120 * 10'000);
  Random random(7);
  for (int draw = 0; draw < 1'000; ++draw) {
    const SpacePoint point = space.Draw(&random);
    const ValueMap values = space.ValuesOf(point);
    EXPECT_LE(values.at("p0") * values.at("p1"), 20);
    EXPECT_LT(values.at("p5"), values.at("p6"));
    EXPECT_EQ(space.At(*space.IndexOf(point)), point);
  }
}

TEST(TuningSpaceTest, DrawsEvenly) {
  ASSERT_OK_AND_ASSIGN(
      const TuningSpace space,
      TuningSpace::Open({{"a", UpTo(1, 8)}, {"b", UpTo(1, 8)}}, {"a * b <= 8"}, {}));
  EXPECT_EQ(space.size(), 20u);
  Random random(3);
  std::map<uint64_t, int> counts;
  for (int draw = 0; draw < 20'000; ++draw) ++counts[*space.IndexOf(space.Draw(&random))];
  ASSERT_EQ(counts.size(), 20u);
  for (const auto& [index, count] : counts) EXPECT_NEAR(count, 1'000, 200) << index;
}

TEST(TuningSpaceTest, BadSpacesSayWhy) {
  const std::vector<SpaceParameter> two = {{"a", {1, 2}}, {"b", {1, 2}}};
  const auto message = [](const absl::StatusOr<TuningSpace>& space) {
    return std::string(space.status().message());
  };
  EXPECT_THAT(message(TuningSpace::Open({{"a", {}}}, {}, {})), HasSubstr("has no values"));
  EXPECT_THAT(message(TuningSpace::Open({{"a", {1, 2, 1}}}, {}, {})), HasSubstr("1 twice"));
  EXPECT_THAT(message(TuningSpace::Open({{"a", {1}}, {"a", {1}}}, {}, {})), HasSubstr("twice"));
  EXPECT_THAT(message(TuningSpace::Open({{"a", UpTo(1, 1025)}}, {}, {})),
              HasSubstr("at most 1024"));
  EXPECT_THAT(message(TuningSpace::Open(two, {"a < c"}, {})), HasSubstr("which is no parameter"));
  EXPECT_THAT(message(TuningSpace::Open(two, {"a <"}, {})), HasSubstr("column"));
  EXPECT_THAT(message(TuningSpace::Open(two, {}, {{"a", 3}})), HasSubstr("rename one"));
  EXPECT_THAT(TuningSpace::Open(two, {"a < b", "b < a"}, {}), HasReason("SPACE_EMPTY"));
  EXPECT_THAT(TuningSpace::Open(two, {"n > 4"}, {{"n", 4}}), HasReason("SPACE_EMPTY"));
  EXPECT_THAT(message(TuningSpace::Open(two, {"4 / (a - a) == b"}, {})),
              HasSubstr("the divisor must not be 0"));
}

// Where a constraint cannot be evaluated nothing is valid, and the space says so.
TEST(TuningSpaceTest, AConstraintThatDividesByZeroLeavesTheRest) {
  ASSERT_OK_AND_ASSIGN(const TuningSpace space,
                       TuningSpace::Open({{"a", {0, 1, 2}}, {"b", {4}}}, {"b % a == 0"}, {}));
  EXPECT_EQ(space.size(), 2u);
  EXPECT_THAT(space.note(), HasSubstr("the divisor must not be 0"));
}

TEST(TuningSpaceTest, ConstraintsThatHangTogetherTooMuchAreRefused) {
  std::vector<SpaceParameter> parameters;
  std::string sum = "0";
  for (int p = 0; p < 12; ++p) {
    parameters.push_back({absl::StrCat("p", p), UpTo(1, 1000)});
    absl::StrAppend(&sum, " + p", p);
  }
  EXPECT_THAT(TuningSpace::Open(parameters, {sum + " == 12"}, {}), HasReason("SPACE_TOO_LARGE"));
  // 8 million beginnings that all differ.
  parameters.resize(4);
  for (SpaceParameter& parameter : parameters) parameter.values = UpTo(1, 200);
  EXPECT_THAT(TuningSpace::Open(parameters, {"p0 + 200 * p1 + 40000 * p2 < 9 * p3"}, {}),
              HasReason("SPACE_TOO_LARGE"));
}

TEST(TuningSpaceTest, WithoutParametersThereIsOneConfiguration) {
  ASSERT_OK_AND_ASSIGN(const TuningSpace space, TuningSpace::Open({}, {"n > 4"}, {{"n", 5}}));
  EXPECT_EQ(space.size(), 1u);
  EXPECT_THAT(space.At(0), ElementsAre());
}

}  // namespace
}  // namespace assay
