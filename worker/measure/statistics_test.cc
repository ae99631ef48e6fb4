#include "worker/measure/statistics.h"

#include <cmath>

#include "base/random.h"
#include "gmock/gmock.h"
#include "worker/measure/stopping/stopping_rule.h"

namespace assay {
namespace {

using ::testing::DoubleNear;

TEST(StatisticsTest, OrderStatisticsMatchHandComputedValues) {
  // Sorted: 1 2 3 4 5 6 7 8 9 100.
  const SampleSummary summary = Summarize({{3, 1, 2, 100, 5}, {4, 9, 8, 7, 6}});
  EXPECT_EQ(summary.count, 10);
  EXPECT_DOUBLE_EQ(summary.min, 1);
  EXPECT_DOUBLE_EQ(summary.q1, 3.25);
  EXPECT_DOUBLE_EQ(summary.median, 5.5);
  EXPECT_DOUBLE_EQ(summary.q3, 7.75);
  EXPECT_NEAR(summary.p95, 59.05, 1e-9);  // 9 + 0.55 * 91
  // Deviations from 5.5: 4.5 3.5 2.5 1.5 .5 .5 1.5 2.5 3.5 94.5; their median is 2.5.
  EXPECT_DOUBLE_EQ(summary.mad, 2.5);
}

TEST(StatisticsTest, AutocorrelationMatchesHandComputedValues) {
  // Mean 3; deviations -2 -1 0 1 2; (2 + 0 + 0 + 2) / 10.
  EXPECT_DOUBLE_EQ(Lag1Autocorrelation(std::vector<double>{1, 2, 3, 4, 5}), 0.4);
  // Alternating: deviations 1 -1 1 -1; -3 / 4.
  EXPECT_DOUBLE_EQ(Lag1Autocorrelation(std::vector<double>{2, 0, 2, 0}), -0.75);
  EXPECT_DOUBLE_EQ(Lag1Autocorrelation(std::vector<double>{5, 5, 5, 5}), 0);
  EXPECT_DOUBLE_EQ(Lag1Autocorrelation(std::vector<double>{5, 6}), 0);
}

TEST(StatisticsTest, TheStepBetweenRunnersIsNoAutocorrelation) {
  const std::vector<double> low = {10, 11, 10, 11, 10, 11};
  const std::vector<double> high = {20, 21, 20, 21, 20, 21};
  EXPECT_LT(Summarize({low, high}).lag1_autocorrelation, -0.5);
}

TEST(StatisticsTest, HalfWidthUsesTheRightRanks) {
  // n = 100: ranks floor(50 - 9.8) = 40 and ceil(51 + 9.8) = 61 of 1..100; median 50.5.
  std::vector<double> values;
  for (int i = 100; i >= 1; --i) values.push_back(i);
  EXPECT_THAT(MedianHalfWidthRatio(values), DoubleNear(21.0 / 2 / 50.5, 1e-12));
  EXPECT_TRUE(std::isinf(MedianHalfWidthRatio(std::vector<double>{1, 2, 3, 4, 5})));
}

TEST(StatisticsTest, TheIntervalCoversTheMedianOftenEnough) {
  constexpr uint64_t kSeed = 20240601;
  SCOPED_TRACE(kSeed);
  Random random(kSeed);
  int covered = 0;
  constexpr int kRounds = 2000;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> values;
    for (int i = 0; i < 41; ++i) values.push_back(1 + random.Uniform());
    // The true median is 1.5; the interval is not symmetric, so this checks half of its width only
    // roughly, around the sample's median.
    const double median = Median(values);
    const double reach = MedianHalfWidthRatio(values) * median;
    covered += std::fabs(median - 1.5) <= 1.3 * reach;
  }
  EXPECT_GT(covered, kRounds * 93 / 100);
}

class StoppingTest : public ::testing::Test {
 protected:
  // The first stop on a series of which every sample takes `sample_time`.
  Stop RunSeries(const std::vector<double>& samples, absl::Duration sample_time, size_t* count) {
    const auto rules = MakeStoppingRules(parameters_);
    for (size_t n = 1; n <= samples.size(); ++n) {
      const SeriesSoFar series{std::span<const double>(samples.data(), n),
                               sample_time * static_cast<double>(n)};
      for (const auto& rule : rules) {
        const Stop stop = rule->Check(series);
        if (stop != Stop::kNo) {
          *count = n;
          return stop;
        }
      }
    }
    *count = samples.size();
    return Stop::kNo;
  }

  StoppingParameters parameters_;
};

TEST_F(StoppingTest, ASteadySeriesConvergesAtTheMinimum) {
  size_t count = 0;
  EXPECT_EQ(RunSeries(std::vector<double>(500, 10.0), absl::Microseconds(10), &count),
            Stop::kConverged);
  EXPECT_EQ(count, 30u);
}

TEST_F(StoppingTest, AWideSeriesGoesOnUntilTheTimeIsUp) {
  std::vector<double> samples;
  for (int i = 0; i < 900; ++i) samples.push_back(i % 2 == 0 ? 10 : 20);
  size_t count = 0;
  EXPECT_EQ(RunSeries(samples, absl::Milliseconds(1), &count), Stop::kTimeLimit);
  EXPECT_EQ(count, 300u);
}

TEST_F(StoppingTest, TheTimeLimitWaitsForTheMinimum) {
  std::vector<double> samples;
  for (int i = 0; i < 100; ++i) samples.push_back(i % 2 == 0 ? 10 : 20);
  size_t count = 0;
  EXPECT_EQ(RunSeries(samples, absl::Milliseconds(100), &count), Stop::kTimeLimit);
  EXPECT_EQ(count, 30u);
}

TEST_F(StoppingTest, TheHardLimitEndsVerySlowSeriesWithFewerSamples) {
  size_t count = 0;
  EXPECT_EQ(RunSeries(std::vector<double>(100, 9e9), absl::Seconds(9), &count), Stop::kTimeLimit);
  EXPECT_EQ(count, 5u);
}

TEST_F(StoppingTest, TheSampleLimitEndsWhatNeverConverges) {
  parameters_.samples_max = 50;
  std::vector<double> samples;
  for (int i = 0; i < 100; ++i) samples.push_back(i % 2 == 0 ? 10 : 20);
  size_t count = 0;
  EXPECT_EQ(RunSeries(samples, absl::Nanoseconds(20), &count), Stop::kSampleLimit);
  EXPECT_EQ(count, 50u);
}

}  // namespace
}  // namespace assay
