// Second runs: another worker gets them where there is one.
#include "server/dispatch/queue.h"
#include "server/dispatch/queue_fixture.h"

namespace assay {
namespace {

constexpr absl::Duration kWait = absl::Minutes(2);  // QueueOptions::other_worker_wait

TEST_F(QueueTest, ASecondRunGoesToAnotherWorker) {
  const std::string first = Register("first");
  const std::string second = Register("second");
  EnqueueElsewhere("e", "first");
  EXPECT_OK(queue_.Acquire(first, "a", kMinute, now_));
  EXPECT_EQ(Granted(), "");
  EXPECT_OK(queue_.Acquire(second, "b", kMinute, now_));
  EXPECT_EQ(PopOne(Kind::kRecordLease).worker, "second");
}

TEST_F(QueueTest, ASecondRunThatArrivesPassesByTheWorkerOfTheFirst) {
  const std::string first = Register("first");
  const std::string second = Register("second");
  EXPECT_OK(queue_.Acquire(first, "a", kMinute, now_));
  EXPECT_OK(queue_.Acquire(second, "b", kMinute, now_));
  EnqueueElsewhere("e", "first");
  EXPECT_EQ(PopOne(Kind::kRecordLease).worker, "second");
  // Other work is not held up by it.
  Enqueue("other");
  EXPECT_EQ(PopOne(Kind::kRecordLease).worker, "first");
}

TEST_F(QueueTest, ASecondRunStaysWhereThereIsNoOtherWorker) {
  const std::string first = Register("first");
  Register("elsewhere", {"cuda"});
  EnqueueElsewhere("e", "first");
  EXPECT_OK(queue_.Acquire(first, "a", kMinute, now_));
  EXPECT_EQ(PopOne(Kind::kRecordLease).worker, "first");
}

TEST_F(QueueTest, ASecondRunWaitsForABusyWorkerAndNotForEver) {
  const std::string first = Register("first");
  const std::string second = Register("second");
  Enqueue("long");
  const QueueLease busy = Lease(second);
  EnqueueElsewhere("e", "first");
  EXPECT_OK(queue_.Acquire(first, "a", kMinute, now_));
  for (absl::Duration waited; waited < kWait; waited += absl::Seconds(10)) {
    EXPECT_EQ(Granted(), "") << waited;
    EXPECT_OK(queue_.Renew(second, busy, now_));
    EXPECT_OK(queue_.Acquire(first, "a", kMinute, now_));
    Pass(absl::Seconds(10));
  }
  EXPECT_EQ(PopOne(Kind::kRecordLease).worker, "first");
}

TEST_F(QueueTest, TheWaitCountsFromTheCreation) {
  const std::string first = Register("first");
  Register("second");
  EnqueueElsewhere("e", "first", kWait - absl::Seconds(1));
  EXPECT_OK(queue_.Acquire(first, "a", kMinute, now_));
  EXPECT_EQ(Granted(), "");
  Pass(absl::Seconds(1));
  EXPECT_EQ(PopOne(Kind::kRecordLease).worker, "first");
}

TEST_F(QueueTest, ASecondRunComesBackWhenTheOthersGo) {
  const std::string first = Register("first");
  Register("second");
  EnqueueElsewhere("e", "first");
  EXPECT_OK(queue_.Acquire(first, "a", kMinute, now_));
  EXPECT_EQ(Granted(), "");
  EXPECT_OK(queue_.SetDraining("second", true, now_));
  EXPECT_EQ(PopOne(Kind::kRecordLease).worker, "first");
}

TEST_F(QueueTest, ASecondRunThatFailedOnTheOtherComesToTheFirst) {
  const std::string first = Register("first");
  const std::string second = Register("second");
  EnqueueElsewhere("e", "first");
  const QueueLease lease = Lease(second);
  Fail(second, lease);
  EXPECT_OK(queue_.Acquire(second, "b", kMinute, now_));
  EXPECT_OK(queue_.Acquire(first, "a", kMinute, now_));
  Pass(absl::Seconds(1));  // the longest first backoff
  EXPECT_EQ(PopOne(Kind::kRecordLease).worker, "first");
}

TEST_F(QueueTest, AWaitingSecondRunCanBeCancelledAndLeavesNoTimer) {
  Register("first");
  Register("second");
  EnqueueElsewhere("e", "first");
  queue_.Cancelled("e", now_);
  EXPECT_FALSE(queue_.Contains("e"));
  Pass(2 * kWait);
  EXPECT_EQ(Granted(), "");
}

}  // namespace
}  // namespace assay
