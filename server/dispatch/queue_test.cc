// Evaluations: order, leases, ends, conflicts, cancellation.
#include "server/dispatch/queue.h"

#include <algorithm>

#include "base/limits.h"
#include "server/dispatch/queue_fixture.h"

namespace assay {
namespace {

using ::testing::AllOf;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Lt;
using ::testing::SizeIs;

TEST_F(QueueTest, GrantsByPriorityThenAge) {
  Enqueue("old", "cpu", 0);
  Enqueue("young", "cpu", 0);
  Enqueue("urgent", "cpu", 5);
  const std::string session = Register("w", {"cpu"}, 3);
  EXPECT_EQ(Lease(session).evaluation, "urgent");
  EXPECT_EQ(Lease(session).evaluation, "old");
  EXPECT_EQ(Lease(session).evaluation, "young");
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
    const auto granted = [&] {
      bool found = false;
      for (const QueueAction& action : queue.TakeActions()) {
        if (action.kind != Kind::kRecordLease) continue;
        fence = action.fence;
        found = true;
      }
      return found;
    };
    EXPECT_TRUE(granted());
    for (int attempt = 1; attempt <= 8; ++attempt) {
      queue.CommitGrant({"evaluations/x", fence}, now);
      EXPECT_OK(
          queue.Abandon(session->session, {"evaluations/x", fence}, {"INTERNAL", "R", "m"}, now));
      queue.CommitEnd({"evaluations/x", fence}, now);
      const absl::Duration failed = now;
      EXPECT_OK(queue.Acquire(session->session, absl::StrCat("q", attempt), kMinute, now));
      EXPECT_FALSE(granted());
      do {
        now += absl::Milliseconds(10);
        queue.Tick(now);
      } while (!granted() && now < failed + absl::Minutes(5));
      run.push_back(now - failed);
    }
  }
  EXPECT_EQ(waits[0], waits[1]);
  for (size_t i = 0; i < waits[0].size(); ++i) {
    const absl::Duration whole = std::min(absl::Seconds(1 << i), absl::Seconds(30));
    EXPECT_THAT(waits[0][i], AllOf(Ge(whole / 2), Lt(whole + absl::Milliseconds(20)))) << i;
  }
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
