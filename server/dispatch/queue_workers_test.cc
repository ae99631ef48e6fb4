// Workers: sessions, polls, matching, quarantine, draining, loss.
#include "base/limits.h"
#include "server/dispatch/queue.h"
#include "server/dispatch/queue_fixture.h"

namespace assay {
namespace {

using ::testing::AllOf;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Lt;
using ::testing::SizeIs;

TEST_F(QueueTest, MatchesKindAndExactClass) {
  const std::string session = Register("w", {"cpu", "cpu-amd", "cuda", "cuda-sm90"}, 9);
  Enqueue("other", "cpu-intel", 9);
  Enqueue("exact", "cpu-amd", 3);
  Enqueue("kind", "cpu", 2);
  Enqueue("gpu", "cuda-sm90", 1);
  EXPECT_EQ(Lease(session).evaluation, "exact");
  EXPECT_EQ(Lease(session).evaluation, "kind");
  EXPECT_EQ(Lease(session).evaluation, "gpu");
  EXPECT_OK(queue_.Acquire(session, "last", kMinute, now_));
  EXPECT_EQ(Granted(), "");
}

TEST_F(QueueTest, ItemThatArrivesGoesToTheWorkerThatWaitsLongest) {
  const std::string first = Register("first");
  const std::string second = Register("second");
  EXPECT_OK(queue_.Acquire(second, "a", kMinute, now_));
  EXPECT_OK(queue_.Acquire(first, "b", kMinute, now_));
  Enqueue("e");
  EXPECT_EQ(PopOne(Kind::kRecordLease).worker, "second");
}

TEST_F(QueueTest, LeaseCountIsBounded) {
  const std::string session = Register("w", {"cpu"}, 2);
  for (const char* name : {"a", "b", "c"}) Enqueue(name);
  const QueueLease first = Lease(session);
  Lease(session);
  EXPECT_OK(queue_.Acquire(session, "third", kMinute, now_));
  EXPECT_EQ(Granted(), "");
  Finish(session, first);
  EXPECT_EQ(Granted(), "c");
}

TEST_F(QueueTest, OpenPollsAreBounded) {
  const std::string session = Register("w", {"cpu"}, 1);
  EXPECT_OK(queue_.Acquire(session, "1", kMinute, now_));
  EXPECT_OK(queue_.Acquire(session, "2", kMinute, now_));
  EXPECT_OK(queue_.Acquire(session, "2", kMinute, now_));
  EXPECT_THAT(queue_.Acquire(session, "3", kMinute, now_),
              AllOf(StatusIs(absl::StatusCode::kResourceExhausted), HasReason("TOO_MANY_POLLS")));
}

TEST_F(QueueTest, PollIsAnsweredEmptyAtItsDeadline) {
  const std::string session = Register("w");
  EXPECT_OK(queue_.Acquire(session, "p", absl::Seconds(20), now_));
  Pass(absl::Seconds(19));
  EXPECT_THAT(Pop(Kind::kAnswerEmpty), IsEmpty());
  Pass(absl::Seconds(1));
  EXPECT_EQ(PopOne(Kind::kAnswerEmpty).poll_id, "p");
  // And at once when it does not want to wait, or never longer than the limit.
  EXPECT_OK(queue_.Acquire(session, "q", absl::ZeroDuration(), now_));
  EXPECT_EQ(PopOne(Kind::kAnswerEmpty).poll_id, "q");
  EXPECT_OK(queue_.Acquire(session, "r", absl::Hours(5), now_));
  Pass(absl::Seconds(limits::kLongPollSecondsMax));
  EXPECT_EQ(PopOne(Kind::kAnswerEmpty).poll_id, "r");
}

TEST_F(QueueTest, RepeatedPollGetsTheSameLeaseWhileItStands) {
  const std::string session = Register("w", {"cpu"}, 2);
  Enqueue("a");
  Enqueue("b");
  EXPECT_OK(queue_.Acquire(session, "p", kMinute, now_));
  const QueueLease lease = CommitGrant();
  EXPECT_OK(queue_.Acquire(session, "p", kMinute, now_));
  const QueueAction again = PopOne(Kind::kAnswerLease);
  EXPECT_EQ(again.evaluation, lease.evaluation);
  EXPECT_EQ(again.fence, lease.fence);
  EXPECT_THAT(Pop(Kind::kRecordLease), IsEmpty());
  Finish(session, lease);
  EXPECT_OK(queue_.Acquire(session, "p", kMinute, now_));
  EXPECT_EQ(Granted(), "b");
}

TEST_F(QueueTest, PollRepeatedWhileTheGrantIsWrittenIsAnsweredByIt) {
  const std::string session = Register("w", {"cpu"}, 2);
  Enqueue("a");
  Enqueue("b");
  EXPECT_OK(queue_.Acquire(session, "p", kMinute, now_));
  queue_.ForgetPoll(session, "p", now_);
  EXPECT_OK(queue_.Acquire(session, "p", kMinute, now_));
  const QueueLease lease = CommitGrant();  // exactly one grant, and it is answered
  EXPECT_EQ(lease.evaluation, "a");
}

TEST_F(QueueTest, LeaseOfAForgottenPollEndsSoonAndCostsNoAttempt) {
  const std::string session = Register("w");
  Enqueue("a");
  EXPECT_OK(queue_.Acquire(session, "p", kMinute, now_));
  queue_.ForgetPoll(session, "p", now_);
  const QueueAction grant = PopOne(Kind::kRecordLease);
  queue_.CommitGrant({"a", grant.fence}, now_);
  EXPECT_THAT(Pop(Kind::kAnswerLease), IsEmpty());
  Pass(absl::Seconds(2));
  const QueueAction end = PopOne(Kind::kRecordEnd);
  EXPECT_EQ(end.error.code, "");
  EXPECT_FALSE(end.final);
  queue_.CommitEnd({"a", grant.fence}, now_);
  const QueueLease lease = Lease(session);
  EXPECT_GT(lease.fence, grant.fence);
  EXPECT_EQ(queue_.ViewWorker("w")->infrastructure_failures, 0);
}

TEST_F(QueueTest, ALateFarewellOfAnAnsweredPollMeansNothing) {
  const std::string session = Register("w");
  Enqueue("a");
  const QueueLease lease = Lease(session);
  queue_.MarkAnswered(lease);
  queue_.ForgetPoll(session, absl::StrCat("p", polls_), now_);
  Pass(absl::Seconds(10));
  EXPECT_OK(queue_.Renew(session, lease, now_));
}

TEST_F(QueueTest, RetryAvoidsTheWorkerThatFailedWhileAnotherCouldTakeIt) {
  const std::string bad = Register("bad");
  const std::string good = Register("good");
  Enqueue("a");
  const QueueLease lease = Lease(bad);
  Fail(bad, lease);
  EXPECT_OK(queue_.Acquire(bad, "again", kMinute, now_));
  Pass(absl::Seconds(5));
  EXPECT_EQ(Granted(), "") << "the other worker is there, if busy";
  EXPECT_OK(queue_.Acquire(good, "p", kMinute, now_));
  EXPECT_EQ(PopOne(Kind::kRecordLease).worker, "good");
}

TEST_F(QueueTest, RetryGoesBackToTheOnlyWorkerLeft) {
  const std::string bad = Register("bad");
  const std::string good = Register("good");
  Enqueue("a");
  Fail(bad, Lease(bad));
  EXPECT_OK(queue_.Acquire(bad, "again", kMinute, now_));
  Pass(absl::Seconds(5));
  EXPECT_EQ(Granted(), "");
  EXPECT_OK(queue_.SetDraining("good", true, now_));
  EXPECT_EQ(Granted(), "a");
}

class TolerantQueueTest : public QueueTest {
 protected:
  TolerantQueueTest() : QueueTest(QueueOptions{.quarantine_after = 1'000'000}) {}
};

TEST_F(TolerantQueueTest, FreshWorkIsNotHiddenBehindRetriesOfOthers) {
  const std::string bad = Register("bad");
  Register("good");
  const int count = 3 * static_cast<int>(limits::kRetryScanMax);
  for (int i = 0; i < count; ++i) {
    Enqueue(absl::StrCat("r", i), "cpu", 5);
    Fail(bad, Lease(bad));
  }
  Pass(absl::Seconds(5));  // all are ready again, and none may go to `bad`
  EXPECT_EQ(queue_.Counters(now_).queued, count);
  EXPECT_OK(queue_.Acquire(bad, "x", kMinute, now_));
  EXPECT_EQ(Granted(), "");
  Enqueue("fresh", "cpu", 0);
  EXPECT_EQ(Granted(), "fresh");
}

TEST_F(QueueTest, WorkerIsQuarantinedAfterFailuresInARowAndComesBack) {
  const std::string session = Register("w", {"cpu"}, 1);
  for (int i = 0; i < 5; ++i) {
    Enqueue(absl::StrCat("e", i));
  }
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(queue_.ViewWorker("w")->state, WorkerState::kActive) << i;
    Fail(session, Lease(session));
  }
  EXPECT_EQ(queue_.ViewWorker("w")->state, WorkerState::kQuarantined);
  EXPECT_EQ(queue_.ViewWorker("w")->infrastructure_failures, 5);
  EXPECT_OK(queue_.Acquire(session, "q", kMinute, now_));
  Pass(absl::Seconds(30));
  EXPECT_EQ(Granted(), "");
  EXPECT_THAT(queue_.WaitingReason("e0", now_), HasSubstr("draining or quarantined"));
  Pass(absl::Seconds(29));
  EXPECT_OK(queue_.Acquire(session, "q2", kMinute, now_));
  Pass(absl::Seconds(1));
  EXPECT_EQ(queue_.ViewWorker("w")->state, WorkerState::kActive);
  // One more failure on probation sends it back, for longer; a person can end that.
  Pop(Kind::kAnswerEmpty);
  Fail(session, CommitGrant());
  EXPECT_EQ(queue_.ViewWorker("w")->state, WorkerState::kQuarantined);
  EXPECT_OK(queue_.SetDraining("w", false, now_));
  EXPECT_EQ(queue_.ViewWorker("w")->state, WorkerState::kActive);
}

TEST_F(QueueTest, SuccessEndsTheRowOfFailures) {
  const std::string session = Register("w", {"cpu"}, 1);
  for (int i = 0; i < 12; ++i) {
    Enqueue(absl::StrCat("e", i));
    const QueueLease lease = Lease(session);
    if (i % 4 == 3) {
      Finish(session, lease);
    } else {
      Fail(session, lease);
    }
  }
  EXPECT_EQ(queue_.ViewWorker("w")->state, WorkerState::kActive);
  EXPECT_EQ(queue_.ViewWorker("w")->completed, 3);
}

TEST_F(QueueTest, DrainedWorkerFinishesAndGetsNothingNew) {
  const std::string session = Register("w", {"cpu"}, 2);
  Enqueue("a");
  const QueueLease lease = Lease(session);
  EXPECT_OK(queue_.Acquire(session, "open", kMinute, now_));
  EXPECT_OK(queue_.SetDraining("w", true, now_));
  EXPECT_TRUE(PopOne(Kind::kAnswerEmpty).drain);
  Enqueue("b");
  EXPECT_OK(queue_.Acquire(session, "next", absl::Seconds(5), now_));
  EXPECT_EQ(Granted(), "");
  EXPECT_TRUE(queue_.Renew(session, lease, now_)->drain);
  Finish(session, lease);
  EXPECT_OK(queue_.SetDraining("w", false, now_));
  EXPECT_EQ(Granted(), "b");
  EXPECT_THAT(queue_.SetDraining("nobody", true, now_), HasReason("WORKER_NOT_FOUND"));
}

TEST_F(QueueTest, NewRegistrationSupersedesTheOldSession) {
  const std::string old = Register("w");
  EXPECT_OK(queue_.Acquire(old, "p", kMinute, now_));
  const std::string fresh = Register("w");
  EXPECT_NE(old, fresh);
  EXPECT_EQ(PopOne(Kind::kAnswerSuperseded).session, old);
  EXPECT_THAT(queue_.Acquire(old, "p", kMinute, now_),
              AllOf(StatusIs(absl::StatusCode::kAborted), HasReason("SESSION_SUPERSEDED")));
  EXPECT_THAT(queue_.Renew(old, {"a", 1}, now_), HasReason("SESSION_SUPERSEDED"));
  EXPECT_THAT(queue_.Complete(old, {"a", 1}, now_), HasReason("SESSION_SUPERSEDED"));
  EXPECT_THAT(queue_.Abandon(old, {"a", 1}, {}, now_), HasReason("SESSION_SUPERSEDED"));
  EXPECT_THAT(queue_.Acquire("from-elsewhere", "p", kMinute, now_), HasReason("SESSION_UNKNOWN"));
}

TEST_F(QueueTest, AnnouncedLeasesGoOverAndOthersEndSoon) {
  std::string session = Register("w", {"cpu"}, 2);
  Enqueue("kept");
  Enqueue("dropped");
  const QueueLease kept = Lease(session);
  const QueueLease dropped = Lease(session);
  session = Register("w", {"cpu"}, 2, {kept, {"kept", 99}, {"nonsense", 1}});
  EXPECT_THAT(kept_, SizeIs(1));
  EXPECT_OK(queue_.Renew(session, kept, now_));
  Pass(absl::Seconds(2));
  const QueueAction end = PopOne(Kind::kRecordEnd);
  EXPECT_EQ(end.evaluation, "dropped");
  EXPECT_EQ(end.error.reason, "WORKER_RESTARTED");
}

TEST_F(QueueTest, ALateRegistrationDoesNotKillWhatTheWorkerHolds) {
  std::string session = Register("w", {"cpu"}, 1);
  Enqueue("a");
  const QueueLease lease = Lease(session);
  Register("w", {"cpu"}, 1, {});  // sent before the lease, delayed on the way
  Pass(absl::Seconds(1));
  session = Register("w", {"cpu"}, 1, {lease});  // the worker's answer to SESSION_SUPERSEDED
  EXPECT_THAT(kept_, SizeIs(1));
  Pass(absl::Seconds(20));
  EXPECT_OK(queue_.Renew(session, lease, now_));
}

TEST_F(QueueTest, GrantInFlightOverARegistrationIsTakenBackUncounted) {
  std::string session = Register("w");
  Enqueue("a");
  EXPECT_OK(queue_.Acquire(session, "p", kMinute, now_));
  const QueueAction grant = PopOne(Kind::kRecordLease);
  session = Register("w");
  queue_.CommitGrant({"a", grant.fence}, now_);
  const QueueAction end = PopOne(Kind::kRecordEnd);
  EXPECT_EQ(end.error.code, "");
  queue_.CommitEnd({"a", grant.fence}, now_);
  EXPECT_EQ(Lease(session).fence, grant.fence + 1);
}

TEST_F(QueueTest, RecoveredLeaseIsKeptWhenAnnouncedInTime) {
  for (const char* name : {"announced", "lost"}) {
    QueueItem item;
    item.evaluation = name;
    item.device_class = "cpu";
    item.fence = 7;
    item.worker = "w";
    queue_.Recover(item, now_);
  }
  EXPECT_EQ(queue_.Counters(now_).leased, 2);
  Pass(absl::Seconds(29));
  EXPECT_THAT(Pop(Kind::kRecordEnd), IsEmpty()) << "restart grace";
  const std::string session = Register("w", {"cpu"}, 2, {{"announced", 7}});
  EXPECT_THAT(kept_, SizeIs(1));
  Pass(absl::Seconds(2));
  EXPECT_EQ(PopOne(Kind::kRecordEnd).evaluation, "lost");
  queue_.CommitEnd({"lost", 7}, now_);
  ASSERT_OK_AND_ASSIGN(CompleteStart start, queue_.Complete(session, {"announced", 7}, now_));
  EXPECT_EQ(start, CompleteStart::kRecord);
  queue_.CommitComplete({"announced", 7}, now_);
  Pass(kMinute);
  EXPECT_EQ(Lease(session).fence, 8) << "stored fence + 1";
}

TEST_F(QueueTest, RecoveredLeaseExpiresWhenNobodyAnnouncesIt) {
  QueueItem item;
  item.evaluation = "a";
  item.device_class = "cpu";
  item.fence = 7;
  item.attempts = 2;
  item.worker = "w";
  queue_.Recover(item, now_);
  Pass(absl::Seconds(30));
  const QueueAction end = PopOne(Kind::kRecordEnd);
  EXPECT_EQ(end.error.reason, "LEASE_LOST_IN_RESTART");
  EXPECT_TRUE(end.final) << "it was the third attempt";
}

TEST_F(QueueTest, AnnouncedLeaseWithAStaleFenceIsNotKept) {
  const std::string a = Register("a");
  const std::string b = Register("b");
  Enqueue("e");
  const QueueLease old = Lease(a);
  Pass(absl::Seconds(30));
  queue_.CommitEnd(old, now_);
  Pass(absl::Seconds(2));
  Pop(Kind::kRecordEnd);
  const QueueLease fresh = Lease(b);
  Register("a", {"cpu"}, 1, {old, fresh});
  EXPECT_THAT(kept_, IsEmpty());
  EXPECT_GT(queue_.Remaining(fresh, now_), absl::ZeroDuration()) << "b holds it";
}

TEST_F(QueueTest, SaysWhyItWaits) {
  Enqueue("a", "cuda");
  EXPECT_EQ(queue_.WaitingReason("a", now_), "") << "a short grace";
  EXPECT_EQ(queue_.Counters(now_).unplaceable, 1);
  Pass(absl::Seconds(5));
  EXPECT_EQ(PopOne(Kind::kWaiting).evaluation, "a");
  EXPECT_EQ(queue_.WaitingReason("a", now_), "no worker is registered");
  Register("w", {"cpu", "cpu-amd"});
  EXPECT_EQ(queue_.WaitingReason("a", now_),
            "no registered worker offers device class 'cuda'; registered: cpu, cpu-amd");
  const std::string gpu = Register("g", {"cuda"});
  EXPECT_EQ(queue_.WaitingReason("a", now_), "");
  EXPECT_EQ(queue_.Counters(now_).unplaceable, 0);
  Pass(absl::Milliseconds(1));
  EXPECT_EQ(PopOne(Kind::kWaiting).evaluation, "a") << "the reason is gone";
  // The worker falls silent.
  Pass(absl::Seconds(31));
  EXPECT_EQ(queue_.ViewWorker("g")->state, WorkerState::kLost);
  EXPECT_EQ(queue_.Counters(now_).unplaceable, 1);
  Pass(absl::Seconds(5));
  EXPECT_EQ(PopOne(Kind::kWaiting).evaluation, "a");
  // And comes back with any call.
  EXPECT_OK(queue_.Acquire(gpu, "p", kMinute, now_));
  EXPECT_EQ(Granted(), "a");
}

TEST_F(QueueTest, AnOpenPollIsPresence) {
  const std::string session = Register("w");
  EXPECT_OK(queue_.Acquire(session, "p", absl::Seconds(50), now_));
  Pass(absl::Seconds(49));
  EXPECT_EQ(queue_.ViewWorker("w")->state, WorkerState::kActive);
  Pass(absl::Seconds(1));
  Pass(absl::Seconds(30));
  EXPECT_EQ(queue_.ViewWorker("w")->state, WorkerState::kLost);
}

TEST_F(QueueTest, KnownWorkersAreBounded) {
  for (size_t i = 0; i < limits::kWorkersMax; ++i) Register(absl::StrCat("w", i));
  EXPECT_THAT(queue_.Register({"one-more", {"cpu"}, 1, {}}, now_),
              AllOf(StatusIs(absl::StatusCode::kResourceExhausted), HasReason("TOO_MANY_WORKERS")));
  Pass(absl::Seconds(31));  // all lost: the oldest makes room
  Register("one-more");
  EXPECT_EQ(PopOne(Kind::kWorkerForgotten).worker, "w0");
  EXPECT_EQ(queue_.Counters(now_).workers_active, 1);
}

}  // namespace
}  // namespace assay
