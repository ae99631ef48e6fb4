#include "store/testing/conformance.h"

#include <atomic>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "store/records.h"
#include "store/testing/builders.h"
#include "store/testing/proto_matcher.h"

namespace assay {
namespace {

using ::assay::testing::Await;
using ::assay::testing::Cancel;
using ::assay::testing::Complete;
using ::assay::testing::CreateCandidate;
using ::assay::testing::CreateEvaluations;
using ::assay::testing::CreateOne;
using ::assay::testing::EndAttempt;
using ::assay::testing::EqualsProto;
using ::assay::testing::Lease;
using ::assay::testing::MakeCandidate;
using ::assay::testing::MakeCompletion;
using ::assay::testing::MakeEvaluation;
using ::assay::testing::MakeGrant;
using ::assay::testing::MakeOutcome;
using ::assay::testing::RunEvaluation;
using ::assay::testing::TestTime;
using ::testing::ElementsAre;

using Field = EvaluationCondition::Field;
using Operator = EvaluationCondition::Operator;

NewEvaluation WithRequest(NewEvaluation evaluation, std::string id, std::string digest) {
  evaluation.request_id = std::move(id);
  evaluation.request_digest = std::move(digest);
  return evaluation;
}

std::vector<NewEvaluation> Batch(std::vector<NewEvaluation> evaluations) { return evaluations; }

}  // namespace

// --- Leases.

TEST_P(StoreConformanceTest, AnEvaluationRunsAndCompletesOnce) {
  ASSERT_OK(CreateOne(store(), MakeEvaluation("e1")));
  ASSERT_OK_AND_ASSIGN(const v1::Evaluation leased, Lease(store(), MakeGrant("e1", 7)));
  EXPECT_EQ(leased.state(), v1::RUNNING);
  EXPECT_EQ(leased.worker(), "workers/w1");
  EXPECT_EQ(leased.attempt_count(), 1);
  EXPECT_EQ(leased.revision(), 2);
  EXPECT_THAT(leased.timeline().lease_time(), EqualsProto(ToTimestamp(TestTime(10))));
  EXPECT_THAT(*store().GetEvaluation("evaluations/e1", false), EqualsProto(leased));

  const Completion completion = MakeCompletion("e1", 7, MakeOutcome("small", 100));
  ASSERT_OK_AND_ASSIGN(const CompletionRecord record, Complete(store(), completion));
  EXPECT_FALSE(record.already_recorded);
  EXPECT_EQ(record.evaluation.state(), v1::SUCCEEDED);
  EXPECT_EQ(record.evaluation.revision(), 3);
  EXPECT_EQ(record.evaluation.timeline().build().seconds(), 2);
  EXPECT_THAT(record.evaluation.timeline().create_time(), EqualsProto(ToTimestamp(TestTime(0))));
  EXPECT_THAT(record.evaluation.timeline().lease_time(), EqualsProto(ToTimestamp(TestTime(10))));
  EXPECT_THAT(record.evaluation.timeline().complete_time(), EqualsProto(ToTimestamp(TestTime(20))));
  EXPECT_EQ(record.evaluation.outcome().output_log(), "output log");
  EXPECT_EQ(record.evaluation.outcome().workload_results(0).measurement().runners_size(), 0);

  // Again: the same record, and nothing is written, whatever it says.
  ASSERT_OK_AND_ASSIGN(const CompletionRecord again,
                       Complete(store(), MakeCompletion("e1", 7, MakeOutcome("small", 5), 99)));
  EXPECT_TRUE(again.already_recorded);
  EXPECT_THAT(again.evaluation, EqualsProto(record.evaluation));
  EXPECT_THAT(*store().GetEvaluation("evaluations/e1", false), EqualsProto(record.evaluation));
  EXPECT_THAT(store().GetEvaluation("evaluations/e1", true)->outcome(),
              EqualsProto(completion.outcome));
  EXPECT_THAT(Complete(store(), MakeCompletion("e1", 6, MakeOutcome("small", 5))),
              ::testing::AllOf(StatusIs(absl::StatusCode::kAborted), HasReason("LEASE_FENCED")));
}

TEST_P(StoreConformanceTest, OnlyTheNewestFenceWrites) {
  ASSERT_OK(CreateOne(store(), MakeEvaluation("e1")));
  // Not leased yet.
  EXPECT_THAT(Complete(store(), MakeCompletion("e1", 1, MakeOutcome("small", 5))),
              HasReason("LEASE_FENCED"));
  EXPECT_THAT(Lease(store(), MakeGrant("e1", 0)), HasReason("NOT_QUEUED")) << "fence not greater";
  ASSERT_OK(Lease(store(), MakeGrant("e1", 5)));
  EXPECT_THAT(Lease(store(), MakeGrant("e1", 6)),
              ::testing::AllOf(StatusIs(absl::StatusCode::kAborted), HasReason("NOT_QUEUED")));

  AttemptEnd end;
  end.evaluation = "evaluations/e1";
  end.error.set_code("UNAVAILABLE");
  end.error.set_reason("LEASE_EXPIRED");
  end.time = TestTime(15);
  end.fence = 4;
  EXPECT_THAT(EndAttempt(store(), end), HasReason("LEASE_FENCED"));
  end.fence = 5;
  ASSERT_OK_AND_ASSIGN(const v1::Evaluation ended, EndAttempt(store(), end));
  EXPECT_EQ(ended.state(), v1::QUEUED);
  EXPECT_EQ(ended.attempt_count(), 1);
  EXPECT_EQ(ended.infrastructure_error().reason(), "LEASE_EXPIRED");
  EXPECT_EQ(ended.revision(), 3);
  EXPECT_THAT(EndAttempt(store(), end), HasReason("LEASE_FENCED"));
  EXPECT_THAT(Complete(store(), MakeCompletion("e1", 5, MakeOutcome("small", 5))),
              HasReason("LEASE_FENCED"));

  for (const int64_t fence : {4, 5}) {
    EXPECT_THAT(Lease(store(), MakeGrant("e1", fence, 2)), HasReason("NOT_QUEUED")) << fence;
  }
  ASSERT_OK(Lease(store(), MakeGrant("e1", 6, 2)));
  EXPECT_THAT(Complete(store(), MakeCompletion("e1", 5, MakeOutcome("small", 5))),
              HasReason("LEASE_FENCED"));
  ASSERT_OK_AND_ASSIGN(const CompletionRecord record,
                       Complete(store(), MakeCompletion("e1", 6, MakeOutcome("small", 5))));
  EXPECT_EQ(record.evaluation.attempt_count(), 2);
  EXPECT_FALSE(record.evaluation.has_infrastructure_error());
}

TEST_P(StoreConformanceTest, AnAttemptGivenBackIsNotCounted) {
  ASSERT_OK(CreateOne(store(), MakeEvaluation("e1")));
  ASSERT_OK(Lease(store(), MakeGrant("e1", 1)));
  AttemptEnd end;
  end.evaluation = "evaluations/e1";
  end.fence = 1;
  end.time = TestTime(15);
  ASSERT_OK_AND_ASSIGN(const v1::Evaluation ended, EndAttempt(store(), end));
  EXPECT_EQ(ended.state(), v1::QUEUED);
  EXPECT_EQ(ended.attempt_count(), 0);
  EXPECT_FALSE(ended.has_infrastructure_error());
}

TEST_P(StoreConformanceTest, AFinalAttemptEndFails) {
  ASSERT_OK(CreateOne(store(), MakeEvaluation("e1")));
  ASSERT_OK(Lease(store(), MakeGrant("e1", 1)));
  AttemptEnd end;
  end.evaluation = "evaluations/e1";
  end.fence = 1;
  end.error.set_code("UNAVAILABLE");
  end.error.set_reason("WORKER_SICK");
  end.final = true;
  end.time = TestTime(15);
  ASSERT_OK_AND_ASSIGN(const v1::Evaluation ended, EndAttempt(store(), end));
  EXPECT_EQ(ended.state(), v1::FAILED);
  EXPECT_EQ(ended.infrastructure_error().reason(), "WORKER_SICK");
  EXPECT_THAT(ended.timeline().complete_time(), EqualsProto(ToTimestamp(TestTime(15))));
  EXPECT_THAT(Lease(store(), MakeGrant("e1", 9)), HasReason("NOT_QUEUED"));
  EXPECT_THAT(Complete(store(), MakeCompletion("e1", 1, MakeOutcome("small", 5))),
              HasReason("LEASE_FENCED"));
  EXPECT_THAT(Cancel(store(), "e1"), HasReason("EVALUATION_FINISHED"));
}

TEST_P(StoreConformanceTest, CancelStopsTheLease) {
  ASSERT_OK(CreateOne(store(), MakeEvaluation("queued")));
  ASSERT_OK(CreateOne(store(), MakeEvaluation("running")));
  ASSERT_OK(Lease(store(), MakeGrant("running", 3)));
  for (const char* id : {"queued", "running"}) {
    ASSERT_OK_AND_ASSIGN(const v1::Evaluation cancelled, Cancel(store(), id));
    EXPECT_EQ(cancelled.state(), v1::CANCELLED);
    EXPECT_TRUE(cancelled.timeline().has_complete_time());
    EXPECT_THAT(Cancel(store(), id),
                ::testing::AllOf(StatusIs(absl::StatusCode::kFailedPrecondition),
                                 HasReason("EVALUATION_FINISHED")));
    EXPECT_THAT(Lease(store(), MakeGrant(id, 9)), HasReason("NOT_QUEUED"));
  }
  EXPECT_THAT(Complete(store(), MakeCompletion("running", 3, MakeOutcome("small", 5))),
              HasReason("LEASE_FENCED"));
  // The raised fence belongs to nobody.
  EXPECT_THAT(Complete(store(), MakeCompletion("running", 4, MakeOutcome("small", 5))),
              HasReason("LEASE_FENCED"));
}

TEST_P(StoreConformanceTest, WritesToUnknownEvaluationsAreNotFound) {
  AttemptEnd end;
  end.evaluation = "evaluations/none";
  EXPECT_THAT(Lease(store(), MakeGrant("none", 1)), HasReason("EVALUATION_NOT_FOUND"));
  EXPECT_THAT(Complete(store(), MakeCompletion("none", 1, MakeOutcome("small", 5))),
              HasReason("EVALUATION_NOT_FOUND"));
  EXPECT_THAT(EndAttempt(store(), end), HasReason("EVALUATION_NOT_FOUND"));
  EXPECT_THAT(Cancel(store(), "none"), HasReason("EVALUATION_NOT_FOUND"));
}

TEST_P(StoreConformanceTest, WritesAreAppliedInTheOrderOfTheCalls) {
  // Each pair of lease and end needs the one before it.
  ASSERT_OK(CreateOne(store(), MakeEvaluation("e1")));
  constexpr int kRounds = 50;
  absl::BlockingCounter left(2 * kRounds);
  std::atomic<int> failures = 0;
  const auto count = [&](const absl::StatusOr<v1::Evaluation>& result) {
    if (!result.ok()) ++failures;
    left.DecrementCount();
  };
  for (int round = 1; round <= kRounds; ++round) {
    store().RecordLease(MakeGrant("e1", round, round), count);
    AttemptEnd end;
    end.evaluation = "evaluations/e1";
    end.fence = round;
    end.error.set_code("UNAVAILABLE");
    end.time = TestTime(15);
    store().RecordAttemptEnd(end, count);
  }
  left.Wait();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(store().GetEvaluation("evaluations/e1", false)->revision(), 1 + 2 * kRounds);
}

// --- Workers, values, life.

TEST_P(StoreConformanceTest, WorkersAreReplaced) {
  const auto record = [&](const v1::Worker& worker) {
    return Await<bool>(
        [&](StoreDone<bool> done) { store().RecordWorker(worker, std::move(done)); });
  };
  v1::Worker worker;
  worker.set_name("workers/b");
  worker.set_state(v1::Worker::ACTIVE);
  worker.add_devices()->set_device_class("cpu-test-avx2");
  worker.mutable_devices(0)->mutable_calibration()->set_name("calibration-1");
  ASSERT_OK(record(worker));
  v1::Worker other;
  other.set_name("workers/a");
  ASSERT_OK(record(other));
  worker.set_state(v1::Worker::LOST);
  worker.set_completed_count(5);
  ASSERT_OK(record(worker));
  ASSERT_OK_AND_ASSIGN(const std::vector<v1::Worker> workers, store().ListWorkers());
  EXPECT_THAT(workers, ElementsAre(EqualsProto(other), EqualsProto(worker)));
}

TEST_P(StoreConformanceTest, StrangeTextSurvives) {
  const std::string strange =
      std::string("a\0b", 3) + "'; DROP TABLE evaluations; --\n\xF0\x9F\x98\x80";
  NewEvaluation evaluation = MakeEvaluation("e1");
  evaluation.evaluation.set_candidate_label(strange);
  evaluation.candidate->mutable_files(0)->set_content(strange);
  ASSERT_OK(CreateOne(store(), WithRequest(evaluation, strange, strange)));
  ASSERT_OK_AND_ASSIGN(const CreatedEvaluation again,
                       CreateOne(store(), WithRequest(evaluation, strange, strange)));
  EXPECT_TRUE(again.existed);
  v1::Outcome outcome = MakeOutcome(strange, 10);
  outcome.set_output_log(strange);
  outcome.mutable_build()->clear_log();
  ASSERT_OK(Lease(store(), MakeGrant("e1", 1)));
  ASSERT_OK(Complete(store(), MakeCompletion("e1", 1, outcome)));
  EXPECT_THAT(store().GetEvaluation("evaluations/e1", true)->outcome(), EqualsProto(outcome));
  EXPECT_EQ(store().GetCandidate(evaluation.candidate->name())->files(0).content(), strange);
  EXPECT_EQ(store()
                .ListEvaluations({{Field::kLabel, Operator::kEqual, strange, 0}}, Page())
                ->items.size(),
            1u);
  EXPECT_EQ(store().Leaderboard({.workload = strange})->at(0).workload(), strange);
}

TEST_P(StoreConformanceTest, ShutdownFinishesWhatWaitsAndRefusesTheRest) {
  constexpr int kCount = 100;
  std::atomic<int> ok = 0;
  for (int i = 0; i < kCount; ++i) {
    store().CreateEvaluations(Batch({MakeEvaluation(absl::StrCat("e", i))}),
                              [&](absl::StatusOr<std::vector<CreatedEvaluation>> created) {
                                if (created.ok()) ++ok;
                              });
  }
  store().Shutdown();
  EXPECT_EQ(ok, kCount);
  store().Shutdown();
  // A refused write is answered from another thread, so that this one may hold a lock.
  const std::thread::id caller = std::this_thread::get_id();
  const absl::StatusOr<v1::Candidate> refused =
      Await<v1::Candidate>([&](StoreDone<v1::Candidate> done) {
        store().CreateCandidate(MakeCandidate("late"), "",
                                [caller, done](absl::StatusOr<v1::Candidate> result) {
                                  EXPECT_NE(std::this_thread::get_id(), caller);
                                  done(std::move(result));
                                });
      });
  EXPECT_THAT(refused, ::testing::AllOf(StatusIs(absl::StatusCode::kUnavailable),
                                        HasReason("STORE_SHUT_DOWN")));
  EXPECT_OK(store().GetEvaluation("evaluations/e99", false));
}

TEST_P(StoreConformanceTest, EverythingSurvivesAReopen) {
  const Completion completion = [] {
    Completion made = MakeCompletion("e1", 1, MakeOutcome("small", 100));
    made.identity = "id";
    return made;
  }();
  ASSERT_OK(RunEvaluation(store(), WithRequest(MakeEvaluation("e1"), "r1", "d1"), completion));
  ASSERT_OK(CreateOne(store(), MakeEvaluation("e2")));
  ASSERT_OK(Lease(store(), MakeGrant("e2", 12)));
  const v1::Evaluation before = *store().GetEvaluation("evaluations/e1", true);
  if (!fixture_->Reopen()) GTEST_SKIP() << GetParam().name << " keeps nothing";
  EXPECT_THAT(*store().GetEvaluation("evaluations/e1", true), EqualsProto(before));
  EXPECT_THAT(store().FindByIdentity("id"), IsOk());
  EXPECT_EQ(store().Leaderboard({})->size(), 1u);
  ASSERT_OK_AND_ASSIGN(const std::vector<UnfinishedEvaluation> unfinished,
                       store().ListUnfinished());
  ASSERT_EQ(unfinished.size(), 1u);
  EXPECT_EQ(unfinished[0].fence, 12);
  ASSERT_OK_AND_ASSIGN(const CreatedEvaluation again,
                       CreateOne(store(), WithRequest(MakeEvaluation("e9"), "r1", "d1")));
  EXPECT_TRUE(again.existed);
  EXPECT_TRUE(Complete(store(), completion)->already_recorded);
  ASSERT_OK(CreateOne(store(), MakeEvaluation("e3")));
}

}  // namespace assay
