#include "server/dispatch/dispatcher_core.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "server/dispatch/dispatcher_fixture.h"
#include "server/dispatch/times.h"

namespace assay {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(DispatcherTest, LeaseCarriesTheWorkAndIsDurableBeforeItIsTold) {
  const v1::Evaluation created = Create("e1");
  const std::string session = Register("w");
  Answer<iv1::AcquireLeaseResponse> answer;
  core_->Acquire(PollRequest(session, "p"), answer.Done());
  runner_->RunAll();
  EXPECT_TRUE(answer.open());
  EXPECT_EQ(Stored(created.name()).state(), v1::QUEUED);
  Settle();
  ASSERT_FALSE(answer.open());
  ASSERT_OK(*answer);
  const iv1::Lease& lease = (*answer)->lease();
  EXPECT_EQ(lease.ref().evaluation(), created.name());
  EXPECT_EQ(lease.ref().fence(), 1);
  EXPECT_EQ(lease.attempt(), 1);
  EXPECT_EQ(lease.duration().seconds(), 30);
  EXPECT_EQ(lease.work().evaluation().state(), v1::RUNNING);
  EXPECT_EQ(lease.work().evaluation().worker(), "workers/w");
  EXPECT_EQ(lease.work().problem().name(), "problems/gelu");
  EXPECT_GT(lease.work().problem().files_size(), 0);
  EXPECT_EQ(lease.work().candidate().name(), created.candidate());
  EXPECT_THAT(observed_, ElementsAre(created.name() + " RUNNING"));
}

TEST_F(DispatcherTest, CompletionIsAcknowledgedWhenDurableWithIdentityAndClass) {
  const v1::Evaluation created = Create("e1");
  const std::string session = Register("w");
  const iv1::Lease lease = Lease(session);
  Answer<iv1::CompleteLeaseResponse> answer;
  Answer<iv1::CompleteLeaseResponse> twin;
  core_->Complete(Completion(session, lease.ref()), answer.Done());
  core_->Complete(Completion(session, lease.ref()), twin.Done());
  EXPECT_TRUE(answer.open());
  Settle();
  ASSERT_OK(*answer);
  EXPECT_FALSE((*answer)->already_recorded());
  EXPECT_TRUE((*twin)->already_recorded());
  EXPECT_EQ(Stored(created.name()).state(), v1::SUCCEEDED);
  EXPECT_OK(store_.FindByIdentity(absl::StrCat(created.name(), "|workers/w|workers/w/devices/0")));
  // After a lost answer, and even after a restart.
  core_.reset();
  Start();
  Answer<iv1::CompleteLeaseResponse> late;
  core_->Complete(Completion(Register("w"), lease.ref()), late.Done());
  Settle();
  ASSERT_OK(*late);
  EXPECT_TRUE((*late)->already_recorded());
  EXPECT_EQ(observed_.back(), created.name() + " SUCCEEDED");
}

TEST_F(DispatcherTest, FullDiskGrantsNothingAndLosesNoCompletion) {
  const v1::Evaluation created = Create("e1");
  const std::string session = Register("w");
  Settle();
  const absl::Status full =
      ErrorWithReason(absl::StatusCode::kResourceExhausted, "STORAGE_FULL", "the disk is full");
  Answer<iv1::AcquireLeaseResponse> poll;
  core_->Acquire(PollRequest(session, "p"), poll.Done());
  runner_->RunAll();
  store_.FailNextWrite(full);
  Settle();
  EXPECT_TRUE(poll.open());
  EXPECT_EQ(Stored(created.name()).state(), v1::QUEUED);
  clock_.Advance(absl::Seconds(1));
  core_->Tick();
  runner_->RunAll();
  Settle();
  ASSERT_FALSE(poll.open());
  const iv1::LeaseRef ref = (*poll)->lease().ref();
  EXPECT_EQ((*poll)->lease().attempt(), 1);

  Answer<iv1::CompleteLeaseResponse> refused;
  core_->Complete(Completion(session, ref), refused.Done());
  store_.FailNextWrite(full);
  Settle();
  EXPECT_THAT(*refused,
              AllOf(StatusIs(absl::StatusCode::kResourceExhausted), HasReason("STORAGE_FULL")));
  Answer<iv1::CompleteLeaseResponse> again;
  core_->Complete(Completion(session, ref), again.Done());
  Settle();
  ASSERT_OK(*again);
  EXPECT_FALSE((*again)->already_recorded());
}

TEST_F(DispatcherTest, UnreadableWorkFailsTheEvaluationNotTheWorker) {
  Holey store;
  store.failure = absl::NotFoundError("no such candidate");
  store.CreateProblem(testing::MakeProblem("gelu"), [](absl::StatusOr<v1::Problem>) {});
  NewEvaluation input = testing::MakeEvaluation("e3");
  input.evaluation.set_device_class("cpu");
  store.CreateEvaluations({input},
                          [](absl::StatusOr<std::vector<CreatedEvaluation>> r) { ASSERT_OK(r); });
  store.RunPending();
  auto runner = std::make_shared<ManualRunner>();
  auto core = DispatcherCore::Create({.clock = &clock_, .store = &store}, {}, runner);
  ASSERT_OK(core);
  Answer<iv1::RegisterWorkerResponse> registered;
  (*core)->Register(Registration("w"), registered.Done());
  const std::string session = (*registered)->session();
  for (int i = 0; i < 3; ++i) {
    Answer<iv1::AcquireLeaseResponse> poll;
    (*core)->Acquire(PollRequest(session, absl::StrCat(i)), poll.Done());
    do {
      store.RunPending();
    } while (runner->RunAll() || store.pending_count() > 0);
    ASSERT_OK(*poll);
    EXPECT_FALSE((*poll)->has_lease());
    clock_.Advance(absl::Seconds(10));
    (*core)->Tick();
  }
  const v1::Evaluation failed = *store.GetEvaluation("evaluations/e3", false);
  EXPECT_EQ(failed.state(), v1::FAILED);
  EXPECT_EQ(failed.infrastructure_error().reason(), "WORK_UNREADABLE");
  EXPECT_EQ((*core)->Workers().front().infrastructure_failure_count(), 0);
}

TEST_F(DispatcherTest, UnreadableSecondAnswerLeavesTheLeaseToTheFirst) {
  Holey store;
  store.CreateProblem(testing::MakeProblem("gelu"), [](absl::StatusOr<v1::Problem>) {});
  NewEvaluation input = testing::MakeEvaluation("e1");
  input.evaluation.set_device_class("cpu");
  store.CreateEvaluations({input}, [](auto result) { ASSERT_OK(result); });
  store.RunPending();
  auto runner = std::make_shared<ManualRunner>();
  DispatcherOptions options;
  options.clock = &clock_;
  options.store = &store;
  auto core = DispatcherCore::Create(options, {}, runner);
  ASSERT_OK(core);
  auto settle = [&] {
    do {
      store.RunPending();
    } while (runner->RunAll() || store.pending_count() > 0);
  };
  Answer<iv1::RegisterWorkerResponse> registered;
  (*core)->Register(Registration("w"), registered.Done());
  const std::string session = (*registered)->session();
  Answer<iv1::AcquireLeaseResponse> first, second, third;
  (*core)->Acquire(PollRequest(session, "p"), first.Done());
  settle();
  ASSERT_OK(*first);
  store.failure = absl::UnavailableError("slow");
  (*core)->Acquire(PollRequest(session, "p"), second.Done());
  settle();
  EXPECT_THAT(*second,
              AllOf(StatusIs(absl::StatusCode::kUnavailable), HasReason("WORK_UNREADABLE")));
  store.failure = absl::OkStatus();
  (*core)->Acquire(PollRequest(session, "p"), third.Done());
  settle();
  ASSERT_OK(*third);
  EXPECT_EQ((*third)->lease().ref().fence(), (*first)->lease().ref().fence());
}

TEST_F(DispatcherTest, CancelReachesTheWorkerAndFencesItsResult) {
  const v1::Evaluation created = Create("e1");
  const std::string session = Register("w");
  const iv1::Lease lease = Lease(session);
  Answer<v1::Evaluation> cancelled;
  core_->Cancel(created.name(), cancelled.Done());
  Settle();
  ASSERT_OK(*cancelled);
  EXPECT_EQ((*cancelled)->state(), v1::CANCELLED);
  iv1::RenewLeaseRequest renew;
  renew.set_session(session);
  *renew.mutable_ref() = lease.ref();
  Answer<iv1::RenewLeaseResponse> renewed;
  core_->Renew(renew, renewed.Done());
  ASSERT_OK(*renewed);
  EXPECT_TRUE((*renewed)->cancel());
  Answer<iv1::CompleteLeaseResponse> complete;
  core_->Complete(Completion(session, lease.ref()), complete.Done());
  Settle();
  EXPECT_THAT(*complete, HasReason("LEASE_FENCED"));
  Answer<v1::Evaluation> again;
  core_->Cancel(created.name(), again.Done());
  Settle();
  EXPECT_THAT(*again, HasReason("EVALUATION_FINISHED"));
  EXPECT_EQ(core_->Counters().leased, 0);
}

TEST_F(DispatcherTest, LeasesSurviveARestartWhenAnnounced) {
  Create("e1");
  const iv1::Lease lease = Lease(Register("w"));
  core_.reset();
  clock_.Advance(absl::Seconds(5));
  Start();
  Answer<iv1::RenewLeaseResponse> unknown;
  iv1::RenewLeaseRequest renew;
  renew.set_session("start1-2");
  *renew.mutable_ref() = lease.ref();
  core_->Renew(renew, unknown.Done());
  EXPECT_THAT(*unknown, HasReason("SESSION_UNKNOWN"));
  const std::string session = Register("w", {lease.ref()});
  EXPECT_EQ((*registered_.back())->kept_leases_size(), 1);
  Answer<iv1::CompleteLeaseResponse> complete;
  core_->Complete(Completion(session, lease.ref()), complete.Done());
  Settle();
  EXPECT_OK(*complete);
}

TEST_F(DispatcherTest, StaleFenceIsRefusedAfterExpiry) {
  const v1::Evaluation created = Create("e1");
  const std::string session = Register("w");
  const iv1::Lease stale = Lease(session);
  clock_.Advance(absl::Seconds(31));
  core_->Tick();
  Settle();
  EXPECT_EQ(Stored(created.name()).state(), v1::QUEUED);
  clock_.Advance(absl::Seconds(5));
  core_->Tick();
  const iv1::Lease fresh = Lease(session);
  EXPECT_GT(fresh.ref().fence(), stale.ref().fence());
  EXPECT_EQ(fresh.attempt(), 2);
  Answer<iv1::CompleteLeaseResponse> refused;
  core_->Complete(Completion(session, stale.ref()), refused.Done());
  Settle();
  EXPECT_THAT(*refused, AllOf(StatusIs(absl::StatusCode::kAborted), HasReason("LEASE_FENCED")));
  EXPECT_GE(core_->Counters().fenced_total, 1);
  EXPECT_EQ(core_->Counters().leases_expired_total, 1);
}

TEST_F(DispatcherTest, AbandonIsAnsweredWhenDurable) {
  const v1::Evaluation created = Create("e1");
  const std::string session = Register("w");
  iv1::AbandonLeaseRequest request;
  request.set_session(session);
  *request.mutable_ref() = Lease(session).ref();
  request.mutable_error()->set_code("RESOURCE_EXHAUSTED");
  request.mutable_error()->set_reason("WORKER_DISK_FULL");
  Answer<iv1::AbandonLeaseResponse> first;
  core_->Abandon(request, first.Done());
  EXPECT_TRUE(first.open());
  store_.FailNextWrite(absl::UnavailableError("slow"));
  Settle();
  EXPECT_THAT(*first, StatusIs(absl::StatusCode::kUnavailable));
  Answer<iv1::AbandonLeaseResponse> second;
  core_->Abandon(request, second.Done());
  clock_.Advance(absl::Seconds(1));
  core_->Tick();
  Settle();
  EXPECT_OK(*second);
  const v1::Evaluation stored = Stored(created.name());
  EXPECT_EQ(stored.state(), v1::QUEUED);
  EXPECT_EQ(stored.attempt_count(), 1);
  EXPECT_EQ(stored.infrastructure_error().reason(), "WORKER_DISK_FULL");
}

TEST_F(DispatcherTest, DecoratesWithStageAndWaitingReason) {
  v1::Evaluation running = Create("e1");
  v1::Evaluation waiting = Create("e2", "cuda");
  const std::string session = Register("w");
  iv1::RenewLeaseRequest renew;
  renew.set_session(session);
  *renew.mutable_ref() = Lease(session).ref();
  renew.set_stage("VERIFY");
  observed_.clear();
  Answer<iv1::RenewLeaseResponse> renewed[2];
  core_->Renew(renew, renewed[0].Done());
  core_->Renew(renew, renewed[1].Done());
  EXPECT_THAT(observed_, ElementsAre(running.name() + " RUNNING VERIFY"));
  running = Stored(running.name());
  core_->Decorate(&running);
  EXPECT_EQ(running.stage(), "VERIFY");
  clock_.Advance(absl::Seconds(6));
  core_->Tick();
  Settle();
  EXPECT_EQ(observed_.back(), waiting.name() + " QUEUED waits");
  core_->Decorate(&waiting);
  EXPECT_THAT(waiting.waiting_reason(), HasSubstr("offers device class 'cuda'; registered: cpu"));
  EXPECT_EQ(core_->Counters().unplaceable, 1);
  renew.set_stage("not a stage");
  Answer<iv1::RenewLeaseResponse> bad;
  core_->Renew(renew, bad.Done());
  EXPECT_THAT(*bad, HasReason("INVALID_STAGE"));
}

TEST_F(DispatcherTest, WorkerRowsFollowTheFleetAndDrainingSurvivesARestart) {
  Register("w");
  Settle();
  ASSERT_OK_AND_ASSIGN(std::vector<v1::Worker> rows, store_.ListWorkers());
  ASSERT_EQ(rows.size(), 1);
  EXPECT_EQ(rows[0].state(), v1::Worker::ACTIVE);
  EXPECT_EQ(rows[0].devices(0).name(), "workers/w/devices/0");
  ASSERT_OK_AND_ASSIGN(v1::Worker drained, core_->SetDraining("workers/w", true));
  EXPECT_EQ(drained.state(), v1::Worker::DRAINING);
  Settle();
  clock_.Advance(absl::Minutes(2));
  core_->Tick();
  Settle();
  core_.reset();
  Start();
  ASSERT_EQ(core_->Workers().size(), 1);
  EXPECT_EQ(core_->Workers()[0].state(), v1::Worker::DRAINING);
  Create("e1");
  Answer<iv1::AcquireLeaseResponse> poll;
  core_->Acquire(PollRequest(Register("w"), "p", 0), poll.Done());
  Settle();
  ASSERT_OK(*poll);
  EXPECT_FALSE((*poll)->has_lease());
  EXPECT_TRUE((*poll)->drain());
  EXPECT_THAT(core_->SetDraining("workers/x", true), HasReason("WORKER_NOT_FOUND"));
}

TEST_F(DispatcherTest, LastSeenIsWrittenAtMostEveryTenSeconds) {
  const std::string session = Register("w");
  Settle();
  size_t writes = 0;
  for (int second = 0; second < 60; ++second) {
    Answer<iv1::AcquireLeaseResponse> poll;
    core_->Acquire(PollRequest(session, "p", 0), poll.Done());
    clock_.Advance(absl::Seconds(1));
    core_->Tick();
    writes += store_.pending_count();
    Settle();
  }
  EXPECT_THAT(writes, AllOf(::testing::Ge(5u), ::testing::Le(6u)));
}

TEST_F(DispatcherTest, RefusesMalformedCalls) {
  auto reason = [this](auto change) {
    iv1::RegisterWorkerRequest request = Registration("w");
    change(&request);
    Answer<iv1::RegisterWorkerResponse> answer;
    core_->Register(request, answer.Done());
    return answer->ok() ? std::string("OK") : GetReason(answer->status());
  };
  EXPECT_EQ(reason([](auto* r) {}), "OK");
  EXPECT_EQ(reason([](auto* r) { r->set_worker("Bad Name"); }), "INVALID_REGISTRATION");
  EXPECT_EQ(reason([](auto* r) { r->set_worker(std::string(65, 'a')); }), "INVALID_REGISTRATION");
  EXPECT_EQ(reason([](auto* r) { r->mutable_description()->clear_devices(); }),
            "INVALID_REGISTRATION");
  EXPECT_EQ(reason([](auto* r) {
              r->mutable_description()->mutable_devices(0)->set_name("workers/other/devices/0");
            }),
            "INVALID_REGISTRATION");
  EXPECT_EQ(reason([](auto* r) {
              for (int i = 0; i <= limits::kLeasesPerWorkerMax; ++i) r->add_held_leases();
            }),
            "INVALID_REGISTRATION");
  EXPECT_EQ(reason([](auto* r) {
              for (size_t i = 0; i < limits::kDevicesPerWorkerMax; ++i) {
                *r->mutable_description()->add_devices() = r->description().devices(0);
              }
            }),
            "INVALID_REGISTRATION");
  Answer<iv1::AcquireLeaseResponse> poll;
  core_->Acquire(PollRequest("s", std::string(65, 'p')), poll.Done());
  EXPECT_THAT(*poll, HasReason("INVALID_POLL"));
  Answer<iv1::CompleteLeaseResponse> complete;
  core_->Complete(iv1::CompleteLeaseRequest(), complete.Done());
  EXPECT_THAT(*complete, HasReason("INVALID_OUTCOME"));
}

TEST_F(DispatcherTest, CapacityIsBounded) {
  EXPECT_OK(core_->CheckCapacity(limits::kQueuedEvaluationsMax));
  Create("e1");
  EXPECT_THAT(core_->CheckCapacity(limits::kQueuedEvaluationsMax),
              AllOf(StatusIs(absl::StatusCode::kResourceExhausted), HasReason("QUEUE_FULL")));
}

TEST_F(DispatcherTest, StopAnswersOpenPolls) {
  const std::string session = Register("w");
  Answer<iv1::AcquireLeaseResponse> poll;
  core_->Acquire(PollRequest(session, "p"), poll.Done());
  EXPECT_TRUE(poll.open());
  core_->Stop();
  EXPECT_THAT(*poll, StatusIs(absl::StatusCode::kUnavailable));
  Answer<iv1::AcquireLeaseResponse> late;
  core_->Acquire(PollRequest(session, "q"), late.Done());
  EXPECT_THAT(*late, HasReason("SHUTTING_DOWN"));
}

TEST_F(DispatcherTest, AForgottenPollIsAnsweredAndTakesNoWork) {
  const std::string session = Register("w");
  Answer<iv1::AcquireLeaseResponse> gone;
  core_->Acquire(PollRequest(session, "p"), gone.Done());
  Settle();
  EXPECT_TRUE(gone.open());
  core_->ForgetPoll(session, "p");
  ASSERT_FALSE(gone.open());
  EXPECT_EQ(gone->status().code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(*gone, HasReason("POLL_FORGOTTEN"));
  const v1::Evaluation created = Create("e1");
  Settle();
  EXPECT_EQ(Stored(created.name()).state(), v1::QUEUED);
  EXPECT_EQ(Lease(session).ref().evaluation(), created.name());
}

TEST_F(DispatcherTest, ManyCallersOfOnePollAreBoundedAndAllAnswered) {
  const std::string session = Register("w");
  std::deque<Answer<iv1::AcquireLeaseResponse>> answers(40);
  for (auto& answer : answers) core_->Acquire(PollRequest(session, "p"), answer.Done());
  Create("e1");
  Settle();
  int leases = 0;
  for (auto& answer : answers) {
    ASSERT_EQ(answer.results.size(), 1);
    if (answer->ok()) {
      EXPECT_TRUE((*answer)->has_lease());
      ++leases;
    } else {
      EXPECT_THAT(*answer, HasReason("OVERLOADED"));
    }
  }
  EXPECT_EQ(leases, 16);
}

TEST_F(DispatcherTest, ConflictWithTheStoreHealsItself) {
  // Cancelled before the queue heard of it: a ghost.
  NewEvaluation input = testing::MakeEvaluation("ghost");
  input.evaluation.set_device_class("cpu");
  v1::Evaluation ghost;
  store_.CreateEvaluations({input}, [&](absl::StatusOr<std::vector<CreatedEvaluation>> result) {
    ghost = result->front().evaluation;
  });
  store_.RecordCancel(ghost.name().empty() ? "evaluations/ghost" : ghost.name(), clock_.Now(),
                      [](absl::StatusOr<v1::Evaluation>) {});
  store_.RunPending();
  core_->Enqueue({ghost});
  Create("real");
  EXPECT_EQ(core_->Counters().queued, 2);
  EXPECT_EQ(Lease(Register("w")).ref().evaluation(), "evaluations/real");
  EXPECT_EQ(core_->Counters().queued, 0);
}

}  // namespace
}  // namespace assay
