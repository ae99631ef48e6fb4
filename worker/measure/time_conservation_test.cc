#include "worker/measure/time_conservation.h"

#include <cmath>
#include <limits>

#include "assay/v1/evaluation.pb.h"
#include "base/status.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"

namespace assay {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(TimeConservationTest, CallsThatCannotBe) {
  for (const double ns : {0.0, -1.0, kNaN, kInfinity}) {
    EXPECT_EQ(GetReason(CheckCallTime(ns)), "TIME_IMPOSSIBLE") << ns;
  }
  EXPECT_TRUE(CheckCallTime(1).ok());
  for (const double ns : {10'000.0, 160.0, 81.0}) {
    EXPECT_TRUE(CheckShortestCall(ns, 160).ok()) << ns;
  }
  for (const double ns : {79.0, kNaN}) {
    EXPECT_EQ(GetReason(CheckShortestCall(ns, 160)), "TIME_IMPOSSIBLE") << ns;
  }
}

TEST(TimeConservationTest, NoMoreThanPassed) {
  const struct {
    double warm_ns;
    double cold_ns;
    double elapsed_ns;
    bool possible;
  } rows[] = {{5e6, 5e6, 20e6, true},   {5e6, 5e6, 10e6, true},  {5e6, 5e6, 9e6, false},
              {5e6, 5e6, 0, false},     {5e6, 5e6, kNaN, false}, {kNaN, 5e6, 20e6, false},
              {5e6, kNaN, 20e6, false}, {5e6, 5e6, -1, false}};
  for (const auto& row : rows) {
    v1::RunnerSamples samples;
    samples.add_warm_ns(row.warm_ns);
    samples.add_cold_ns(row.cold_ns);
    samples.set_elapsed_ns(row.elapsed_ns);
    EXPECT_EQ(CheckConservation(samples).ok(), row.possible)
        << row.warm_ns << " and " << row.cold_ns << " within " << row.elapsed_ns;
  }
}

}  // namespace
}  // namespace assay
