#include "server/dispatch/queue.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Lt;
using ::testing::SizeIs;
using Kind = QueueAction::Kind;

constexpr absl::Duration kMinute = absl::Minutes(1);

// Drives the queue as the dispatcher does, with a store that answers when the test says so.
class QueueTest : public ::testing::Test {
 protected:
  explicit QueueTest(QueueOptions options = QueueOptions()) : queue_(options) {}

  std::string Register(const std::string& worker, std::vector<std::string> classes = {"cpu"},
                       int slots = 1, std::vector<QueueLease> held = {}) {
    auto session = queue_.Register({worker, std::move(classes), slots, std::move(held)}, now_);
    EXPECT_OK(session);
    kept_ = session->kept;
    Take();
    return session->session;
  }
  void Enqueue(const std::string& evaluation, const std::string& device_class = "cpu",
               int priority = 0) {
    QueueItem item;
    item.evaluation = evaluation;
    item.device_class = device_class;
    item.priority = priority;
    queue_.Enqueue(item, now_);
  }
  // Takes the actions, keeps those of kinds that tests ask for.
  void Take() {
    for (QueueAction& action : queue_.TakeActions()) actions_.push_back(std::move(action));
  }
  std::vector<QueueAction> Pop(Kind kind) {
    Take();
    std::vector<QueueAction> found;
    for (auto it = actions_.begin(); it != actions_.end();) {
      if (it->kind != kind) {
        ++it;
        continue;
      }
      found.push_back(std::move(*it));
      it = actions_.erase(it);
    }
    return found;
  }
  QueueAction PopOne(Kind kind) {
    std::vector<QueueAction> found = Pop(kind);
    EXPECT_THAT(found, SizeIs(1)) << "kind " << static_cast<int>(kind);
    return found.empty() ? QueueAction() : found.front();
  }
  // Polls, commits the grant, and returns the answered lease.
  QueueLease Lease(const std::string& session) {
    EXPECT_OK(queue_.Acquire(session, absl::StrCat("p", ++polls_), kMinute, now_));
    return CommitGrant();
  }
  QueueLease CommitGrant() {
    const QueueAction grant = PopOne(Kind::kRecordLease);
    const QueueLease lease{grant.evaluation, grant.fence};
    queue_.CommitGrant(lease, now_);
    const QueueAction answer = PopOne(Kind::kAnswerLease);
    EXPECT_EQ(answer.evaluation, lease.evaluation);
    return lease;
  }
  // The name of what would be granted next to this session, without committing.
  std::string Granted() {
    std::vector<QueueAction> grants = Pop(Kind::kRecordLease);
    return grants.empty() ? "" : grants.front().evaluation;
  }
  void Pass(absl::Duration time) {
    now_ += time;
    queue_.Tick(now_);
  }
  // Ends the attempt by the worker's word and makes that durable.
  void Fail(const std::string& session, const QueueLease& lease) {
    EXPECT_OK(queue_.Abandon(session, lease, {"INTERNAL", "TOOL_MISSING", "no compiler"}, now_));
    EXPECT_THAT(Pop(Kind::kRecordEnd), SizeIs(1));
    queue_.CommitEnd(lease, now_);
  }
  void Finish(const std::string& session, const QueueLease& lease) {
    ASSERT_OK_AND_ASSIGN(CompleteStart start, queue_.Complete(session, lease, now_));
    EXPECT_EQ(start, CompleteStart::kRecord);
    queue_.CommitComplete(lease, now_);
  }

  absl::Duration now_ = absl::Seconds(1000);
  DispatchQueue queue_;
  std::vector<QueueAction> actions_;
  std::vector<QueueLease> kept_;
  int polls_ = 0;
};

TEST_F(QueueTest, GrantsByPriorityThenAge) {
  Enqueue("old", "cpu", 0);
  Enqueue("young", "cpu", 0);
  Enqueue("urgent", "cpu", 5);
  const std::string session = Register("w", {"cpu"}, 3);
  EXPECT_EQ(Lease(session).evaluation, "urgent");
  EXPECT_EQ(Lease(session).evaluation, "old");
  EXPECT_EQ(Lease(session).evaluation, "young");
}

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

TEST_F(QueueTest, UnrenewedLeaseExpiresAndARenewedOneDoesNot) {
  const std::string session = Register("w", {"cpu"}, 2);
  Enqueue("renewed");
  Enqueue("silent");
  const QueueLease renewed = Lease(session);
  const QueueLease silent = Lease(session);
  Pass(absl::Seconds(20));
  ASSERT_OK_AND_ASSIGN(RenewedLease answer, queue_.Renew(session, renewed, now_));
  EXPECT_EQ(answer.duration, absl::Seconds(30));
  Pass(absl::Seconds(10));
  const QueueAction end = PopOne(Kind::kRecordEnd);
  EXPECT_EQ(end.evaluation, "silent");
  EXPECT_EQ(end.error.reason, "LEASE_EXPIRED");
  EXPECT_THAT(queue_.Renew(session, silent, now_),
              AllOf(StatusIs(absl::StatusCode::kAborted), HasReason("LEASE_FENCED")));
  EXPECT_THAT(queue_.Complete(session, silent, now_), HasReason("LEASE_FENCED"));
  EXPECT_EQ(queue_.Counters(now_).fenced_total, 2);
}

TEST_F(QueueTest, RenewalsDoNotExtendALeaseForEver) {
  const std::string session = Register("w");
  Enqueue("a");
  const QueueLease lease = Lease(session);
  int renewals = 0;
  while (queue_.Renew(session, lease, now_).ok() && renewals < 1000) {
    ++renewals;
    Pass(absl::Seconds(10));
  }
  EXPECT_EQ(renewals, 120);  // 20 minutes
  EXPECT_EQ(PopOne(Kind::kRecordEnd).error.reason, "LEASE_TOO_OLD");
}

TEST_F(QueueTest, FencesGrowOverRetriesAndFailedWrites) {
  const std::string session = Register("w");
  QueueItem item;
  item.evaluation = "a";
  item.device_class = "cpu";
  item.fence = 41;  // as stored before a restart
  queue_.Enqueue(item, now_);
  EXPECT_OK(queue_.Acquire(session, "p", kMinute, now_));
  const QueueAction first = PopOne(Kind::kRecordLease);
  EXPECT_EQ(first.fence, 42);
  queue_.FailGrant({"a", 42}, WriteFailure::kStorage, now_);
  EXPECT_THAT(Pop(Kind::kRecordLease), IsEmpty()) << "no grants while the storage fails";
  Pass(absl::Seconds(1));
  const QueueAction second = PopOne(Kind::kRecordLease);
  EXPECT_GT(second.fence, 42);
  EXPECT_EQ(second.attempt, 1) << "a lease that was not granted is no attempt";
  queue_.CommitGrant({"a", second.fence}, now_);
  Pop(Kind::kAnswerLease);
  Fail(session, {"a", second.fence});
  Pass(kMinute);
  const QueueLease third = Lease(session);
  EXPECT_GT(third.fence, second.fence);
}

TEST_F(QueueTest, FailedAfterTheLastAttempt) {
  const std::string session = Register("w");
  Enqueue("a");
  for (int attempt = 1; attempt <= 3; ++attempt) {
    const QueueLease lease = Lease(session);
    EXPECT_OK(queue_.Abandon(session, lease, {"INTERNAL", "TOOL_MISSING", "m"}, now_));
    const QueueAction end = PopOne(Kind::kRecordEnd);
    EXPECT_EQ(end.final, attempt == 3);
    EXPECT_EQ(end.error.reason, "TOOL_MISSING");
    queue_.CommitEnd(lease, now_);
    Pass(kMinute);
  }
  EXPECT_FALSE(queue_.Contains("a"));
}

TEST_F(QueueTest, RetriesBackOffWithDeterministicJitter) {
  std::vector<absl::Duration> waits[2];
  for (auto& run : waits) {
    DispatchQueue queue{QueueOptions{.attempts_max = 20, .quarantine_after = 100}};
    absl::Duration now = absl::Seconds(5);
    auto session = queue.Register({"w", {"cpu"}, 1, {}}, now);
    QueueItem item;
    item.evaluation = "evaluations/x";
    item.device_class = "cpu";
    queue.Enqueue(item, now);
    EXPECT_OK(queue.Acquire(session->session, "p", kMinute, now));
    int64_t fence = 0;
    for (int attempt = 1; attempt <= 8; ++attempt) {
      for (const QueueAction& action : queue.TakeActions()) {
        if (action.kind == Kind::kRecordLease) fence = action.fence;
      }
      queue.CommitGrant({"evaluations/x", fence}, now);
      EXPECT_OK(
          queue.Abandon(session->session, {"evaluations/x", fence}, {"INTERNAL", "R", "m"}, now));
      queue.CommitEnd({"evaluations/x", fence}, now);
      const absl::Duration failed = now;
      EXPECT_OK(queue.Acquire(session->session, absl::StrCat("q", attempt), kMinute, now));
      queue.TakeActions();
      bool granted = false;
      while (!granted && now < failed + absl::Minutes(5)) {
        now += absl::Milliseconds(10);
        queue.Tick(now);
        if (queue.Holder("evaluations/x") == "w") granted = true;
      }
      run.push_back(now - failed);
      // The action of this grant is read at the top of the loop.
    }
  }
  EXPECT_EQ(waits[0], waits[1]);
  for (size_t i = 0; i < waits[0].size(); ++i) {
    const absl::Duration whole = std::min(absl::Seconds(1 << i), absl::Seconds(30));
    EXPECT_THAT(waits[0][i], AllOf(Ge(whole / 2), Lt(whole + absl::Milliseconds(20)))) << i;
  }
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

TEST_F(QueueTest, WhatWasGivenBackUnusedMayGoToTheSameWorker) {
  const std::string session = Register("w");
  Register("other");
  Enqueue("a");
  const QueueLease lease = Lease(session);
  EXPECT_OK(queue_.Abandon(session, lease, {}, now_));
  queue_.CommitEnd(lease, now_);
  const QueueLease again = Lease(session);
  EXPECT_EQ(again.fence, lease.fence + 1);
  // A second time it must wait, or the two would spin.
  EXPECT_OK(queue_.Abandon(session, again, {}, now_));
  queue_.CommitEnd(again, now_);
  EXPECT_OK(queue_.Acquire(session, "x", kMinute, now_));
  EXPECT_EQ(Granted(), "");
  Pass(absl::Seconds(1));
  EXPECT_EQ(Granted(), "a");
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
  EXPECT_EQ(queue_.Holder("e"), "b");
}

TEST_F(QueueTest, CompletionStaysRetryableWhenTheStoreFails) {
  const std::string session = Register("w");
  Enqueue("a");
  const QueueLease lease = Lease(session);
  ASSERT_OK_AND_ASSIGN(CompleteStart start, queue_.Complete(session, lease, now_));
  EXPECT_EQ(start, CompleteStart::kRecord);
  ASSERT_OK_AND_ASSIGN(start, queue_.Complete(session, lease, now_));
  EXPECT_EQ(start, CompleteStart::kJoin);
  Pass(absl::Minutes(2));  // the write takes its time; nothing expires
  EXPECT_THAT(Pop(Kind::kRecordEnd), IsEmpty());
  queue_.FailComplete(lease, WriteFailure::kStorage, now_);
  Pass(absl::Seconds(29));
  Finish(session, lease);
  ASSERT_OK_AND_ASSIGN(start, queue_.Complete(session, lease, now_));
  EXPECT_EQ(start, CompleteStart::kAskStore) << "the store knows that it was recorded";
}

TEST_F(QueueTest, EndThatCouldNotBeWrittenIsWrittenAgain) {
  const std::string session = Register("w");
  Enqueue("a");
  const QueueLease lease = Lease(session);
  EXPECT_OK(queue_.Abandon(session, lease, {"INTERNAL", "R", "m"}, now_));
  Pop(Kind::kRecordEnd);
  queue_.FailEnd(lease, WriteFailure::kStorage, now_);
  ASSERT_OK_AND_ASSIGN(AbandonStart start, queue_.Abandon(session, lease, {}, now_));
  EXPECT_EQ(start, AbandonStart::kEnding);
  Pass(absl::Seconds(1));
  const QueueAction again = PopOne(Kind::kRecordEnd);
  EXPECT_EQ(again.error.reason, "R");
  queue_.CommitEnd(lease, now_);
  Pass(kMinute);
  EXPECT_EQ(Lease(session).evaluation, "a");
}

TEST_F(QueueTest, ConflictsAreResolvedByWhatTheStoreSays) {
  struct Case {
    const char* name;
    std::optional<DispatchQueue::StoredState> stored;
  };
  const std::string session = Register("w");
  const Case cases[] = {
      {"gone", std::nullopt},
      {"queued", DispatchQueue::StoredState{false, 9, 1}},
      {"running", DispatchQueue::StoredState{true, 9, 1}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    Enqueue(c.name);
    EXPECT_OK(queue_.Acquire(session, c.name, kMinute, now_));
    const QueueAction grant = PopOne(Kind::kRecordLease);
    queue_.FailGrant({c.name, grant.fence}, WriteFailure::kConflict, now_);
    EXPECT_EQ(PopOne(Kind::kResync).evaluation, c.name);
    queue_.ResyncFailed(c.name, now_);
    Pass(absl::Seconds(1));
    EXPECT_EQ(PopOne(Kind::kResync).evaluation, c.name);
    queue_.Resynced(c.name, c.stored, now_);
    if (!c.stored.has_value()) {
      EXPECT_FALSE(queue_.Contains(c.name));
      continue;
    }
    if (c.stored->running) {
      const QueueAction end = PopOne(Kind::kRecordEnd);
      EXPECT_EQ(end.fence, 9);
      EXPECT_EQ(end.error.code, "");
      queue_.CommitEnd({c.name, 9}, now_);
    }
    const QueueAction next = PopOne(Kind::kRecordLease);
    EXPECT_EQ(next.fence, 10);
    EXPECT_EQ(next.attempt, 2);
    queue_.CommitGrant({c.name, 10}, now_);
    Pop(Kind::kAnswerLease);
    Finish(session, {c.name, 10});
  }
}

TEST_F(QueueTest, CancelledInEveryState) {
  const std::string session = Register("w", {"cpu"}, 9);
  // Queued.
  Enqueue("queued", "other");
  queue_.Cancelled("queued", now_);
  EXPECT_FALSE(queue_.Contains("queued"));
  // Granting: the store refuses the lease.
  Enqueue("granting");
  EXPECT_OK(queue_.Acquire(session, "p", kMinute, now_));
  const QueueAction grant = PopOne(Kind::kRecordLease);
  queue_.Cancelled("granting", now_);
  queue_.FailGrant({"granting", grant.fence}, WriteFailure::kConflict, now_);
  EXPECT_FALSE(queue_.Contains("granting"));
  EXPECT_THAT(Pop(Kind::kResync), IsEmpty());
  Enqueue("next");  // the poll is still open
  const QueueLease next = CommitGrant();
  // Leased: its worker hears of it and gives it back, without a write.
  queue_.Cancelled("next", now_);
  ASSERT_OK_AND_ASSIGN(RenewedLease renewed, queue_.Renew(session, next, now_));
  EXPECT_TRUE(renewed.cancel);
  EXPECT_THAT(queue_.Complete(session, next, now_), HasReason("LEASE_FENCED"));
  EXPECT_FALSE(queue_.Contains("next"));
  Enqueue("leased");
  const QueueLease leased = Lease(session);
  queue_.Cancelled("leased", now_);
  ASSERT_OK_AND_ASSIGN(AbandonStart start, queue_.Abandon(session, leased, {}, now_));
  EXPECT_EQ(start, AbandonStart::kGone);
  EXPECT_THAT(Pop(Kind::kRecordEnd), IsEmpty());
  // Leased to a worker that says nothing: forgotten at expiry, without a write.
  Enqueue("silent");
  Lease(session);
  queue_.Cancelled("silent", now_);
  Pass(absl::Seconds(30));
  EXPECT_FALSE(queue_.Contains("silent"));
  EXPECT_THAT(Pop(Kind::kRecordEnd), IsEmpty());
  // Completing: the cancellation came first.
  Enqueue("completing");
  const QueueLease completing = Lease(session);
  EXPECT_OK(queue_.Complete(session, completing, now_));
  queue_.Cancelled("completing", now_);
  queue_.FailComplete(completing, WriteFailure::kConflict, now_);
  EXPECT_FALSE(queue_.Contains("completing"));
  EXPECT_EQ(queue_.Counters(now_).leased, 0);
  EXPECT_EQ(queue_.size(), 0);
}

TEST_F(QueueTest, WhatTheStoreKnowsAsFinishedDoesNotWaitForEver) {
  Enqueue("a", "nobody-has-it");
  queue_.Finished("a", now_);
  EXPECT_EQ(PopOne(Kind::kResync).evaluation, "a");
  queue_.Resynced("a", std::nullopt, now_);
  EXPECT_EQ(queue_.size(), 0);
  EXPECT_EQ(queue_.Counters(now_).queued, 0);
  queue_.Finished("a", now_);
  EXPECT_THAT(Pop(Kind::kResync), IsEmpty());
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

TEST_F(QueueTest, LateAndDoubledResultsOfWritesAreIgnored) {
  const std::string session = Register("w");
  Enqueue("a");
  const QueueLease lease = Lease(session);
  queue_.CommitGrant(lease, now_);
  queue_.FailGrant(lease, WriteFailure::kConflict, now_);
  queue_.CommitEnd(lease, now_);
  queue_.CommitComplete(lease, now_);
  queue_.Resynced("a", std::nullopt, now_);
  EXPECT_OK(queue_.Renew(session, lease, now_));
  Finish(session, lease);
  queue_.CommitComplete(lease, now_);
  queue_.FailComplete(lease, WriteFailure::kStorage, now_);
  EXPECT_EQ(queue_.size(), 0);
  EXPECT_EQ(queue_.Counters(now_).completed_total, 1);
}

// Not a benchmark: a scan of the queue for every grant would take hours here.
TEST_F(QueueTest, GrantingDoesNotScanTheQueue) {
  const int count = 200'000;
  for (int i = 0; i < count; ++i) {
    Enqueue(absl::StrCat("evaluations/", i), i % 3 == 0 ? "cuda" : "cpu", i % 5);
  }
  EXPECT_EQ(queue_.Counters(now_).queued, count);
  const std::string session = Register("w", {"cpu"}, 1);
  for (int i = 0; i < 20'000; ++i) Finish(session, Lease(session));
  EXPECT_EQ(queue_.Counters(now_).queued, count - 20'000);
}

}  // namespace
}  // namespace assay
