#include "client/cli/restarts.h"

#include "base/clock.h"
#include "gtest/gtest.h"

namespace assay {
namespace {

TEST(RestartBudget, CountsWithinTheWindowOnly) {
  FakeClock clock;
  RestartBudget budget;
  // One an hour can go on for ever.
  for (size_t i = 0; i < 3 * kRestartsMax; ++i) {
    EXPECT_TRUE(budget.Take(clock.Monotonic())) << i;
    clock.Advance(absl::Hours(1));
  }
  for (size_t i = 0; i < kRestartsMax; ++i) {
    EXPECT_TRUE(budget.Take(clock.Monotonic())) << i;
    clock.Advance(absl::Minutes(1));
  }
  EXPECT_FALSE(budget.Take(clock.Monotonic()));
  // The first of them leaves the window.
  clock.Advance(kRestartWindow - absl::Minutes(1) * kRestartsMax);
  EXPECT_TRUE(budget.Take(clock.Monotonic()));
  EXPECT_FALSE(budget.Take(clock.Monotonic()));
}

}  // namespace
}  // namespace assay
