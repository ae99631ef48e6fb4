#include "server/executor.h"

#include <atomic>

#include "absl/synchronization/notification.h"
#include "base/test_matchers.h"
#include "gtest/gtest.h"

namespace assay {
namespace {

TEST(Executor, RefusesWhatDoesNotFitAndRunsWhatIsQueued) {
  std::atomic<int> ran = 0;
  absl::Notification started;
  absl::Notification release;
  Executor executor(1, 2);
  ASSERT_OK(executor.Submit([&] {
    started.Notify();
    release.WaitForNotification();
    ++ran;
  }));
  started.WaitForNotification();
  ASSERT_OK(executor.Submit([&] { ++ran; }));
  ASSERT_OK(executor.Submit([&] { ++ran; }));
  EXPECT_EQ(executor.queued(), 2u);
  const absl::Status refused = executor.Submit([&] { ++ran; });
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(refused, HasReason("OVERLOADED"));
  EXPECT_EQ(executor.rejected_total(), 1);
  release.Notify();
  executor.Shutdown();
  EXPECT_EQ(ran, 3);
  EXPECT_THAT(executor.Submit([&] { ++ran; }), HasReason("SHUTTING_DOWN"));
  EXPECT_EQ(ran, 3);
}

TEST(WriteBudget, BoundsCountAndBytesButNeverRefusesASingleWrite) {
  WriteBudget budget(3, 100);
  ASSERT_OK(budget.Acquire(1, 500));
  EXPECT_THAT(budget.Acquire(1, 1), HasReason("OVERLOADED"));
  budget.Release(1, 500);
  ASSERT_OK(budget.Acquire(2, 10));
  EXPECT_THAT(budget.Acquire(2, 10), HasReason("OVERLOADED"));
  ASSERT_OK(budget.Acquire(1, 90));
  EXPECT_EQ(budget.in_flight(), 3u);
  budget.Release(3, 100);
  EXPECT_EQ(budget.in_flight(), 0u);
}

}  // namespace
}  // namespace assay
