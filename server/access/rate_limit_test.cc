#include "server/access/rate_limit.h"

#include "gtest/gtest.h"

namespace assay {
namespace {

TEST(RateLimitTest, TakesABurstAndThenTheRate) {
  RateLimit limit(2, 3);
  const absl::Duration start = absl::Hours(5);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(limit.Take(start), absl::ZeroDuration()) << i;
  EXPECT_EQ(limit.Take(start), absl::Milliseconds(500));
  // Whoever waits as long as was said is let in, and what was refused was not counted.
  EXPECT_EQ(limit.Take(start + absl::Milliseconds(250)), absl::Milliseconds(250));
  EXPECT_EQ(limit.Take(start + absl::Milliseconds(500)), absl::ZeroDuration());
  EXPECT_EQ(limit.Take(start + absl::Milliseconds(500)), absl::Milliseconds(500));
  // Never more than the burst, however long it was idle.
  const absl::Duration later = start + absl::Hours(100);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(limit.Take(later), absl::ZeroDuration()) << i;
  EXPECT_GT(limit.Take(later), absl::ZeroDuration());
}

TEST(RateLimitTest, TimeThatGoesBackIsNoTime) {
  RateLimit limit(1, 1);
  EXPECT_EQ(limit.Take(absl::Seconds(10)), absl::ZeroDuration());
  EXPECT_EQ(limit.Take(absl::Seconds(5)), absl::Seconds(1));
  EXPECT_EQ(limit.Take(absl::Seconds(10)), absl::Seconds(1));
  EXPECT_EQ(limit.Take(absl::Seconds(11)), absl::ZeroDuration());
}

}  // namespace
}  // namespace assay
