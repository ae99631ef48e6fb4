// Second runs of what would rank first, and replays.
#include <string>

#include "absl/strings/str_cat.h"
#include "server/dispatch/dispatcher_fixture.h"
#include "store/confirmation.h"

namespace assay {
namespace {

using ::testing::ElementsAre;

class DispatcherConfirmationTest : public DispatcherTest {
 protected:
  void Complete(const std::string& session, const iv1::LeaseRef& ref, v1::Outcome outcome) {
    iv1::CompleteLeaseRequest request = Completion(session, ref);
    *request.mutable_outcome() = std::move(outcome);
    Answer<iv1::CompleteLeaseResponse> answer;
    core_->Complete(request, answer.Done());
    Settle();
    ASSERT_FALSE(answer.open());
    ASSERT_OK(*answer);
  }
  // A poll that stays open: the evaluation that it is answered with, if any.
  std::string Poll(const std::string& session) {
    Answer<iv1::AcquireLeaseResponse>& answer = open_.emplace_back();
    core_->Acquire(PollRequest(session, absl::StrCat("open", ++polls_)), answer.Done());
    Settle();
    if (answer.open()) return "";
    last_ = (*answer)->lease();
    return last_.ref().evaluation();
  }
  v1::LeaderboardEntry First() { return store_.Leaderboard({})->at(0); }

  std::deque<Answer<iv1::AcquireLeaseResponse>> open_;
  iv1::Lease last_;
};

TEST_F(DispatcherConfirmationTest, WhatWouldRankFirstIsRunAgainOnAnotherWorker) {
  const v1::Evaluation created = Create("e1");
  const std::string first = Register("first");
  const std::string second = Register("second");
  Complete(first, Lease(first).ref(), testing::MakeOutcome("small", 100));
  EXPECT_EQ(First().confirmation(), v1::LeaderboardEntry::PENDING);
  EXPECT_EQ(First().rank(), 0);
  EXPECT_EQ(core_->Counters().queued, 1);
  EXPECT_EQ(Poll(first), "");
  EXPECT_EQ(Poll(second), ConfirmationName(created.name()));
  EXPECT_EQ(last_.work().evaluation().confirms(), created.name());
  EXPECT_EQ(last_.work().evaluation().device_class(), "cpu-test");
  EXPECT_EQ(last_.work().nonce(), 0u) << "fresh inputs";
  Complete(second, last_.ref(), testing::MakeOutcome("small", 101));
  EXPECT_EQ(First().confirmation(), v1::LeaderboardEntry::CONFIRMED);
  EXPECT_EQ(First().rank(), 1);
  EXPECT_EQ(First().confirmed_by(), ConfirmationName(created.name()));
  EXPECT_EQ(core_->Counters().queued, 0) << "a second run has no second run";
}

TEST_F(DispatcherConfirmationTest, ASecondRunSurvivesARestartAndStillPrefersAnother) {
  const v1::Evaluation created = Create("e1");
  const std::string session = Register("first");
  const iv1::Lease lease = Lease(session);
  iv1::CompleteLeaseRequest request = Completion(session, lease.ref());
  *request.mutable_outcome() = testing::MakeOutcome("small", 100);
  Answer<iv1::CompleteLeaseResponse> lost;
  core_->Complete(request, lost.Done());
  store_.ApplyPendingWithoutAnswer();
  core_.reset();
  Start();
  const std::string first = Register("first");
  const std::string second = Register("second");
  EXPECT_EQ(Poll(first), "");
  // The worker says it again: nothing is made twice.
  request.set_session(first);
  Answer<iv1::CompleteLeaseResponse> again;
  core_->Complete(request, again.Done());
  Settle();
  ASSERT_OK(*again);
  EXPECT_TRUE((*again)->already_recorded());
  EXPECT_EQ(core_->Counters().queued, 1);
  EXPECT_EQ(Poll(second), ConfirmationName(created.name()));
}

TEST_F(DispatcherConfirmationTest, ASecondRunThatFailsIsAskedAgainAndThenTheFirstSaysSo) {
  const v1::Evaluation created = Create("e1");
  std::string session = Register("only");
  Complete(session, Lease(session).ref(), testing::MakeOutcome("small", 100));
  const std::string second = ConfirmationName(created.name());
  const int tries = kSecondRunTries * DispatcherOptions().attempts_max;
  for (int attempt = 1; attempt <= tries; ++attempt) {
    EXPECT_EQ(store_.GetEvaluation(second, false)->state(), v1::QUEUED) << attempt;
    if (attempt == 5) {  // the count survives a restart
      core_.reset();
      Start();
      session = Register("only");
    }
    const iv1::Lease lease = Lease(session);
    ASSERT_EQ(lease.ref().evaluation(), second);
    EXPECT_EQ(lease.attempt(), attempt);
    iv1::AbandonLeaseRequest request;
    request.set_session(session);
    *request.mutable_ref() = lease.ref();
    request.mutable_error()->set_code("UNAVAILABLE");
    request.mutable_error()->set_reason("GUEST_LOST");
    Answer<iv1::AbandonLeaseResponse> answer;
    core_->Abandon(request, answer.Done());
    Settle();
    ASSERT_OK(*answer);
    clock_.Advance(absl::Hours(2));  // any backoff and any quarantine
    core_->Tick();
    Settle();
    session = Register("only");
  }
  EXPECT_EQ(store_.GetEvaluation(second, false)->state(), v1::FAILED);
  EXPECT_EQ(First().confirmation(), v1::LeaderboardEntry::PENDING);
  EXPECT_THAT(store_.GetEvaluation(created.name(), false)->outcome().message(),
              ::testing::HasSubstr(
                  absl::StrCat(second, ", failed ", tries, " times, last with GUEST_LOST")));
}

TEST_F(DispatcherConfirmationTest, AFullQueueIsLeftToClients) {
  confirm_while_queued_max_ = 3;
  core_.reset();
  Start();
  const std::string session = Register("only");
  for (const bool full : {true, false}) {
    const std::string id = full ? "full" : "roomy";
    Create(id);
    const iv1::Lease lease = Lease(session);
    for (int i = 0; full && i < 3; ++i) Create(absl::StrCat("waits", i), "cuda");
    Complete(session, lease.ref(), testing::MakeOutcome("small", 100));
    EXPECT_EQ(store_.GetEvaluation(ConfirmationName("evaluations/" + id), false).ok(), !full);
    // Cancelled ones make room.
    for (int i = 0; full && i < 3; ++i) {
      Answer<v1::Evaluation> cancelled;
      core_->Cancel(absl::StrCat("evaluations/waits", i), cancelled.Done());
      Settle();
      ASSERT_OK(*cancelled);
    }
  }
}

TEST_F(DispatcherConfirmationTest, ALoneWorkerConfirmsItself) {
  const v1::Evaluation created = Create("e1");
  const std::string session = Register("only");
  Complete(session, Lease(session).ref(), testing::MakeOutcome("small", 100));
  EXPECT_EQ(Poll(session), ConfirmationName(created.name()));
}

TEST_F(DispatcherConfirmationTest, AReplayBringsTheNonceAndTheVersionOfTheFirst) {
  Create("e1");
  const std::string session = Register("w");
  v1::Outcome outcome = testing::MakeOutcome("small", 100);
  outcome.set_nonce(0xfeedfacecafebeef);
  const iv1::Lease first = Lease(session);
  EXPECT_EQ(first.work().nonce(), 0u);
  Complete(session, first.ref(), outcome);
  ASSERT_EQ(Poll(session), "evaluations/e1-confirmation");
  Complete(session, last_.ref(), outcome);

  store_.CreateProblem(testing::MakeProblem("gelu", 2, "changed"), [](auto) {});
  NewEvaluation replay = testing::MakeEvaluation("e2");
  replay.evaluation.set_replay_of("evaluations/e1");
  store_.CreateEvaluations({replay},
                           [](absl::StatusOr<std::vector<CreatedEvaluation>> r) { ASSERT_OK(r); });
  store_.RunPending();
  core_->Enqueue({*store_.GetEvaluation("evaluations/e2", false)});
  ASSERT_EQ(Poll(session), "evaluations/e2");
  EXPECT_EQ(last_.work().nonce(), 0xfeedfacecafebeef);
  EXPECT_EQ(last_.work().problem().version(), 1);
  EXPECT_FALSE(last_.work().evaluation().has_outcome());
  Complete(session, last_.ref(), outcome);
  EXPECT_EQ(core_->Counters().queued, 0);
  EXPECT_EQ(store_.GetRanOn("evaluations/e2")->problem_version, 1);
  // It answers nobody, although nothing else of it differs.
  EXPECT_THAT(store_.FindByIdentity("evaluations/e2|workers/w|workers/w/devices/0"),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_OK(store_.FindByIdentity("evaluations/e1|workers/w|workers/w/devices/0"));
}

// The nonce tells every input: nobody hears of it while the candidate may still run.
TEST_F(DispatcherConfirmationTest, NoOutcomeIsToldBeforeTheEnd) {
  Create("e1");
  const std::string session = Register("w");
  std::vector<std::string> told;
  core_->SetObserver([&](const v1::Evaluation& e) {
    told.push_back(absl::StrCat(v1::State_Name(e.state()), " ", e.outcome().nonce()));
  });
  const iv1::Lease lease = Lease(session);
  iv1::RenewLeaseRequest renew;
  renew.set_session(session);
  *renew.mutable_ref() = lease.ref();
  renew.set_stage("MEASURE");
  Answer<iv1::RenewLeaseResponse> renewed;
  core_->Renew(renew, renewed.Done());
  v1::Outcome outcome = testing::MakeOutcome("small", 0);
  outcome.set_nonce(7);
  Complete(session, lease.ref(), outcome);
  EXPECT_THAT(told, ElementsAre("RUNNING 0", "RUNNING 0", "SUCCEEDED 7"));
}

}  // namespace
}  // namespace assay
