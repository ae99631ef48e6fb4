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
  const struct {
    double duration_ns;
    double empty_ns;
    bool possible;
  } rows[] = {{10'000, 160, true}, {160, 160, true},  {81, 160, true},  {79, 160, false},
              {0, 0, false},       {-1, 0, false},    {kNaN, 0, false}, {kInfinity, 0, false},
              {1, 0, true},        {kNaN, 160, false}};
  for (const auto& row : rows) {
    const absl::Status status = CheckCallTime(row.duration_ns, row.empty_ns);
    EXPECT_EQ(status.ok(), row.possible) << row.duration_ns << " against " << row.empty_ns;
    if (!row.possible) {
      EXPECT_EQ(GetReason(status), "TIME_IMPOSSIBLE");
    }
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
