#include "server/gate/gate.h"

#include <cmath>
#include <limits>

#include "base/random.h"
#include "base/test_matchers.h"
#include "gtest/gtest.h"

namespace assay {
namespace {

std::vector<GatePair> ConstantPairs(int count, double ratio) {
  std::vector<GatePair> pairs;
  for (int i = 0; i < count; ++i) {
    // A spread far below the floor, so that the scale is the floor.
    const double wiggle = 1 + 1e-5 * (i % 3);
    pairs.push_back({1000 * wiggle, 1000 * wiggle * ratio});
  }
  return pairs;
}

GateWorkloadResult DecideOne(const GateOptions& options, std::vector<GatePair> pairs) {
  return DecideGate(options, {{"w", std::move(pairs)}}).workloads.at(0);
}

TEST(Gate, DecidesClearCases) {
  struct Case {
    const char* what;
    GateTier tier;
    int pairs;
    double ratio;
    GateDecision want;
  };
  const Case cases[] = {
      {"equal", GateTier::kDefault, 16, 1.0, GateDecision::kPass},
      {"faster", GateTier::kDefault, 16, 0.8, GateDecision::kPass},
      {"10 % slower", GateTier::kDefault, 16, 1.1, GateDecision::kRegression},
      {"2 % slower is tolerated by nobody but loose", GateTier::kDefault, 16, 1.02,
       GateDecision::kRegression},
      {"0.8 % slower, loose", GateTier::kLoose, 16, 1.008, GateDecision::kPass},
      {"1.2 % slower, strict", GateTier::kStrict, 32, 1.012, GateDecision::kRegression},
      {"six pairs can pass", GateTier::kDefault, 6, 1.0, GateDecision::kPass},
      {"five cannot", GateTier::kDefault, 5, 1.0, GateDecision::kInconclusive},
      {"eight pairs cannot fail", GateTier::kDefault, kGatePairsToFail - 1, 1.5,
       GateDecision::kInconclusive},
      {"nine can", GateTier::kDefault, kGatePairsToFail, 1.5, GateDecision::kRegression},
      {"none", GateTier::kDefault, 0, 1.0, GateDecision::kInconclusive},
  };
  for (const Case& c : cases) {
    const GateWorkloadResult got = DecideOne({.tier = c.tier}, ConstantPairs(c.pairs, c.ratio));
    EXPECT_EQ(got.decision, c.want) << c.what << ": " << got.explanation;
    EXPECT_FALSE(got.explanation.empty()) << c.what;
  }
}

TEST(Gate, ReportsTheNumbers) {
  const GateWorkloadResult got = DecideOne({.scale = 0.01}, ConstantPairs(16, 1.1));
  EXPECT_NEAR(got.ratio, 1.1, 1e-9);
  EXPECT_LE(got.ratio_low, got.ratio);
  EXPECT_GE(got.ratio_high, got.ratio);
  EXPECT_GE(got.confidence, 0.95);
  EXPECT_LT(got.confidence, 0.99);
  EXPECT_DOUBLE_EQ(got.scale, 0.01);
  EXPECT_NEAR(got.minimum_detectable_effect, 0.005 + 4.2 * 0.01 / 4, 1e-12);
  EXPECT_EQ(got.pairs_read, 9);
  EXPECT_GE(got.evidence_of_regression, 100);
}

TEST(Gate, DropsBrokenPairsAndRefusesWhenThereAreMany) {
  std::vector<GatePair> pairs = ConstantPairs(12, 1.0);
  pairs.push_back({0, 1000});
  pairs.push_back({1000, std::numeric_limits<double>::quiet_NaN()});
  pairs.push_back({std::numeric_limits<double>::infinity(), 1000});
  GateWorkloadResult got = DecideOne({}, pairs);
  EXPECT_EQ(got.decision, GateDecision::kPass);
  EXPECT_EQ(got.dropped_count, 3);
  EXPECT_EQ(got.pair_count, 12);
  pairs.push_back({-1, 1000});
  pairs.push_back({1000, 0});
  got = DecideOne({}, pairs);
  EXPECT_EQ(got.decision, GateDecision::kInconclusive) << got.explanation;
}

TEST(Gate, OneRegressionDecidesAndOneDoubtPreventsAPass) {
  const GateWorkload pass = {"a", ConstantPairs(16, 1.0)};
  const GateWorkload fail = {"b", ConstantPairs(16, 1.2)};
  const GateWorkload doubt = {"c", ConstantPairs(3, 1.0)};
  EXPECT_EQ(DecideGate({}, {pass, pass}).decision, GateDecision::kPass);
  EXPECT_EQ(DecideGate({}, {pass, fail, doubt}).decision, GateDecision::kRegression);
  EXPECT_EQ(DecideGate({}, {pass, doubt}).decision, GateDecision::kInconclusive);
  EXPECT_EQ(DecideGate({}, {}).decision, GateDecision::kInconclusive);
}

TEST(Gate, TierNamesRoundTrip) {
  for (GateTier tier : {GateTier::kStrict, GateTier::kDefault, GateTier::kLoose}) {
    ASSERT_OK_AND_ASSIGN(const GateTier got, ParseGateTier(GateTierName(tier)));
    EXPECT_EQ(got, tier);
  }
  EXPECT_THAT(ParseGateTier("lax"), StatusIs(absl::StatusCode::kInvalidArgument));
}

// The median interval covers the true median at least as often as it says.
TEST(Gate, IntervalCoversTheMedian) {
  constexpr uint64_t kSeed = 7;
  Random random(kSeed);
  int covered = 0;
  constexpr int kRuns = 2000;
  for (int run = 0; run < kRuns; ++run) {
    std::vector<GatePair> pairs;
    for (int i = 0; i < 10; ++i) {
      // A skewed distribution whose median is 1.
      pairs.push_back({1000, 1000 * std::exp(random.Uniform() < 0.5 ? -random.Uniform() * 0.01
                                                                    : random.Uniform() * 0.05)});
    }
    const GateWorkloadResult got = DecideOne({}, pairs);
    covered += got.ratio_low <= 1 && 1 <= got.ratio_high;
  }
  EXPECT_GE(covered, kRuns * 0.95) << "seed " << kSeed;
}

// Student's t with four degrees of freedom, scaled to unit variance: heavy tails as in practice.
double T4(Random& random) {
  const auto normal = [&random] {
    return std::sqrt(-2 * std::log(1 - random.Uniform())) *
           std::cos(2 * 3.14159265358979323846 * random.Uniform());
  };
  double squares = 0;
  for (int i = 0; i < 4; ++i) {
    const double x = normal();
    squares += x * x;
  }
  return normal() / std::sqrt(squares / 4) / std::sqrt(2.0);
}

struct Shares {
  double regression = 0;
  double pass = 0;
};

Shares Simulate(GateTier tier, double slowdown, double sigma, bool with_history, int pair_count,
                int runs, uint64_t seed) {
  Random random(seed);
  Shares shares;
  for (int run = 0; run < runs; ++run) {
    std::vector<GatePair> pairs;
    double previous = T4(random);
    for (int i = 0; i < pair_count; ++i) {
      // Pairs correlate by 0.2, as the machine drifts.
      const double noise = 0.2 * previous + std::sqrt(1 - 0.04) * T4(random);
      previous = noise;
      pairs.push_back({1000, 1000 * (1 + slowdown) * std::exp(sigma * noise)});
    }
    const GateWorkloadResult got =
        DecideOne({.tier = tier, .scale = with_history ? sigma : 0}, std::move(pairs));
    shares.regression += got.decision == GateDecision::kRegression;
    shares.pass += got.decision == GateDecision::kPass;
  }
  shares.regression /= runs;
  shares.pass /= runs;
  return shares;
}

TEST(Gate, OperatingCharacteristic) {
  constexpr int kRuns = 4000;
  uint64_t seed = 20240501;
  struct Case {
    int pairs;
    double slowdown;
    double sigma;
    double regression_min;
    double regression_max;
  };
  const Case cases[] = {
      // A/A: alarms.
      {32, 0, 0.002, 0, 0.001},
      {32, 0, 0.005, 0, 0.001},
      {32, 0, 0.01, 0, 0.005},
      {32, 0, 0.02, 0, 0.005},
      // Real slowdowns: found.
      {32, 0.02, 0.002, 0.99, 1},
      {32, 0.02, 0.005, 0.99, 1},
      {32, 0.02, 0.01, 0.9, 1},
      {32, 0.05, 0.005, 0.999, 1},
      {32, 0.05, 0.01, 0.99, 1},
      {32, 0.05, 0.02, 0.97, 1},
      {kGatePairsDefault, 0, 0.01, 0, 0.005},
      {kGatePairsDefault, 0.05, 0.01, 0.97, 1},
  };
  for (const bool with_history : {true, false}) {
    for (const Case& c : cases) {
      const Shares got =
          Simulate(GateTier::kDefault, c.slowdown, c.sigma, with_history, c.pairs, kRuns, ++seed);
      EXPECT_GE(got.regression, c.regression_min)
          << "slowdown " << c.slowdown << " sigma " << c.sigma << " history " << with_history
          << " seed " << seed;
      EXPECT_LE(got.regression, c.regression_max)
          << "slowdown " << c.slowdown << " sigma " << c.sigma << " history " << with_history
          << " seed " << seed;
      if (c.slowdown == 0 && c.sigma <= 0.01) {
        EXPECT_GE(got.pass, 0.99) << "sigma " << c.sigma << " history " << with_history << " seed "
                                  << seed;
      }
    }
  }
}

}  // namespace
}  // namespace assay
