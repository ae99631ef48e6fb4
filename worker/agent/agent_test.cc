// The lease loop with a fake coordinator and a fake clock.
#include "worker/agent/agent.h"

#include <deque>

#include "absl/strings/str_cat.h"
#include "assay/internal/v1/dispatch.pb.h"
#include "assay/internal/v1/runner.pb.h"
#include "assay/v1/fleet.pb.h"
#include "base/status.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "worker/agent/runner_pool.h"
#include "worker/sandbox/slots.h"

namespace assay {
namespace {

using internal::v1::WorkSpec;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::Status Aborted(const char* reason) {
  return ErrorWithReason(absl::StatusCode::kAborted, reason, "no longer");
}

// A coordinator of one worker. Answers from queues; when a queue is empty, the default applies.
class FakeTransport : public DispatchTransport {
 public:
  explicit FakeTransport(FakeClock* clock) : clock_(clock) {}

  absl::Status Register(const internal::v1::RegisterWorkerRequest& request, absl::Duration timeout,
                        internal::v1::RegisterWorkerResponse* response) override {
    ASSAY_RETURN_IF_ERROR(Next(&register_errors));
    ++registrations;
    held.clear();
    caveats.clear();
    for (const v1::Device& device : request.description().devices()) {
      caveats.insert(caveats.end(), device.caveats().begin(), device.caveats().end());
    }
    for (const internal::v1::LeaseRef& ref : request.held_leases()) {
      held.push_back(ref.evaluation());
      if (keep_leases) *response->add_kept_leases() = ref;
    }
    response->set_session(absl::StrCat("session-", registrations));
    return absl::OkStatus();
  }

  absl::Status Acquire(const internal::v1::AcquireLeaseRequest& request, absl::Duration timeout,
                       internal::v1::AcquireLeaseResponse* response) override {
    polls.push_back(request.poll_id());
    ASSAY_RETURN_IF_ERROR(Next(&acquire_errors));
    if (request.session() != absl::StrCat("session-", registrations)) {
      return Aborted("SESSION_UNKNOWN");
    }
    if (leases == 0) {
      if (on_idle) on_idle();
      return absl::OkStatus();
    }
    --leases;
    internal::v1::Lease& lease = *response->mutable_lease();
    lease.mutable_ref()->set_evaluation(absl::StrCat("evaluations/", ++granted));
    lease.mutable_ref()->set_fence(granted);
    lease.mutable_duration()->set_seconds(30);
    return absl::OkStatus();
  }

  absl::Status Renew(const internal::v1::RenewLeaseRequest& request, absl::Duration timeout,
                     internal::v1::RenewLeaseResponse* response) override {
    renewals.push_back(request.stage());
    if (renew_takes > absl::ZeroDuration()) clock_->Advance(renew_takes);
    ASSAY_RETURN_IF_ERROR(Next(&renew_errors));
    response->mutable_duration()->set_seconds(30);
    response->set_cancel(cancel);
    return absl::OkStatus();
  }

  absl::Status Complete(const internal::v1::CompleteLeaseRequest& request, absl::Duration timeout,
                        internal::v1::CompleteLeaseResponse* response) override {
    complete_sessions.push_back(request.session());
    ASSAY_RETURN_IF_ERROR(Next(&complete_errors));
    completed.push_back(request.ref().evaluation());
    return absl::OkStatus();
  }

  absl::Status Abandon(const internal::v1::AbandonLeaseRequest& request,
                       absl::Duration timeout) override {
    ASSAY_RETURN_IF_ERROR(Next(&abandon_errors));
    abandoned.push_back(absl::StrCat(request.ref().evaluation(), " ", request.error().code(), " ",
                                     request.error().reason()));
    return absl::OkStatus();
  }

  void CancelAcquire() override { ++acquire_cancels; }

  int leases = 0;  // that are still to be granted
  int granted = 0;
  int registrations = 0;
  int acquire_cancels = 0;
  bool keep_leases = true;
  bool cancel = false;
  absl::Duration renew_takes;
  std::deque<absl::Status> register_errors, acquire_errors, renew_errors, complete_errors,
      abandon_errors;
  std::vector<std::string> polls, renewals, completed, abandoned, held, complete_sessions, caveats;
  std::function<void()> on_idle;

 private:
  static absl::Status Next(std::deque<absl::Status>* errors) {
    if (errors->empty()) return absl::OkStatus();
    const absl::Status status = errors->front();
    errors->pop_front();
    return status;
  }
  FakeClock* const clock_;
};

class AgentTest : public ::testing::Test {
 protected:
  AgentTest() : transport_(&clock_) {
    auto description = std::make_shared<internal::v1::RegisterWorkerRequest>();
    description->set_worker("w");
    description->mutable_description()->add_devices()->set_kind("cuda");
    AgentOptions options;
    options.transport = &transport_;
    options.clock = &clock_;
    options.description = description;
    options.renew_in_background = false;
    options.judge = [this](const WorkSpec&, const PipelineHooks& hooks, v1::Outcome* outcome,
                           v1::Timeline*) {
      ++judged_;
      outcome->set_verdict(v1::PASSED);
      return judge_ ? judge_(hooks) : absl::OkStatus();
    };
    options.self_check = [this] {
      ++self_checks_;
      return self_check_ ? self_check_() : absl::OkStatus();
    };
    options.is_suspect = [this] { return is_suspect_ && is_suspect_(); };
    options.on_registered = [this] { ++announced_; };
    agent_ = std::make_unique<Agent>(std::move(options));
    transport_.on_idle = [this] { agent_->Drain(); };
  }

  FakeClock clock_;
  FakeTransport transport_;
  std::function<absl::Status(const PipelineHooks&)> judge_;
  std::function<absl::Status()> self_check_;
  std::function<bool()> is_suspect_;
  int judged_ = 0;
  int self_checks_ = 0;
  int announced_ = 0;
  std::unique_ptr<Agent> agent_;
};

TEST_F(AgentTest, TakesJudgesAndCompletesOneAfterTheOther) {
  transport_.leases = 3;
  ASSERT_OK(agent_->Run());
  EXPECT_THAT(transport_.completed, ElementsAre("evaluations/1", "evaluations/2", "evaluations/3"));
  EXPECT_EQ(transport_.registrations, 1);
  EXPECT_EQ(announced_, 1);
  EXPECT_EQ(transport_.acquire_cancels, 1);
  EXPECT_THAT(transport_.polls, ElementsAre("poll-1", "poll-2", "poll-3", "poll-4"));
}

TEST_F(AgentTest, RegistersAndPollsAgainWhileTheServerIsAway) {
  transport_.register_errors = {absl::UnavailableError("refused"),
                                absl::UnavailableError("refused")};
  transport_.acquire_errors = {absl::UnavailableError("reset"),
                               absl::DeadlineExceededError("slow")};
  transport_.leases = 1;
  ASSERT_OK(agent_->Run());
  // A poll whose answer was lost keeps its id, so that its lease is not lost.
  EXPECT_THAT(transport_.polls, ElementsAre("poll-1", "poll-1", "poll-1", "poll-2"));
  EXPECT_THAT(transport_.completed, ElementsAre("evaluations/1"));
  EXPECT_GT(clock_.Monotonic(), absl::Milliseconds(400));  // it waited in between
}

TEST_F(AgentTest, RegistersAgainAfterARestartOfTheServer) {
  transport_.acquire_errors = {Aborted("SESSION_UNKNOWN")};
  transport_.leases = 1;
  ASSERT_OK(agent_->Run());
  EXPECT_EQ(transport_.registrations, 2);
  EXPECT_EQ(announced_, 1);
  EXPECT_THAT(transport_.completed, ElementsAre("evaluations/1"));
}

TEST_F(AgentTest, StopsWhenAnotherWorkerTookItsName) {
  transport_.acquire_errors = {Aborted("SESSION_SUPERSEDED")};
  EXPECT_THAT(agent_->Run(), StatusIs(absl::StatusCode::kAborted, HasSubstr("--name")));
}

TEST_F(AgentTest, ARefusedRegistrationIsFinal) {
  transport_.register_errors = {absl::InvalidArgumentError("bad name")};
  EXPECT_THAT(agent_->Run(), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(AgentTest, RenewsAtAThirdOfTheLeaseAndTellsTheStage) {
  transport_.leases = 1;
  judge_ = [this](const PipelineHooks& hooks) {
    hooks.set_stage("BUILD");
    agent_->keeper()->Tick();  // not due yet
    clock_.Advance(absl::Seconds(10));
    agent_->keeper()->Tick();
    hooks.set_stage("VERIFY");
    clock_.Advance(absl::Seconds(9));
    agent_->keeper()->Tick();  // not due yet
    clock_.Advance(absl::Seconds(1));
    agent_->keeper()->Tick();
    EXPECT_EQ(agent_->keeper()->UntilDue(), absl::Seconds(10));
    EXPECT_TRUE(hooks.keep_going());
    return absl::OkStatus();
  };
  ASSERT_OK(agent_->Run());
  EXPECT_THAT(transport_.renewals, ElementsAre("BUILD", "VERIFY"));
}

TEST_F(AgentTest, AFencedLeaseStopsTheWorkAndWritesNothing) {
  transport_.leases = 1;
  transport_.renew_errors = {Aborted("LEASE_FENCED")};
  judge_ = [this](const PipelineHooks& hooks) {
    clock_.Advance(absl::Seconds(10));
    EXPECT_TRUE(hooks.keep_going());
    agent_->keeper()->Tick();
    EXPECT_FALSE(hooks.keep_going());
    return absl::CancelledError("stopped");
  };
  ASSERT_OK(agent_->Run());
  EXPECT_THAT(transport_.completed, IsEmpty());
  EXPECT_THAT(transport_.abandoned, IsEmpty());
  EXPECT_EQ(self_checks_, 0);
}

TEST_F(AgentTest, FencesItselfWhenNoRenewalComesThrough) {
  transport_.leases = 1;
  for (int i = 0; i < 20; ++i) transport_.renew_errors.push_back(absl::UnavailableError("away"));
  judge_ = [this](const PipelineHooks& hooks) {
    for (int second = 1; second < 30; ++second) {
      clock_.Advance(absl::Seconds(1));
      agent_->keeper()->Tick();
      EXPECT_TRUE(hooks.keep_going()) << second;
    }
    clock_.Advance(absl::Seconds(1));
    EXPECT_FALSE(hooks.keep_going());  // by the clock alone, no renewal needed
    return absl::CancelledError("stopped");
  };
  ASSERT_OK(agent_->Run());
  EXPECT_EQ(transport_.renewals.size(), 20u);  // from second 10 on, one a second
  EXPECT_THAT(transport_.completed, IsEmpty());
  EXPECT_THAT(transport_.abandoned, IsEmpty());
}

// The lease counts from before the renewal was sent.
TEST_F(AgentTest, ASlowRenewalExtendsTheLeaseFromItsStart) {
  transport_.leases = 1;
  transport_.renew_takes = absl::Seconds(8);
  judge_ = [this](const PipelineHooks& hooks) {
    clock_.Advance(absl::Seconds(10));
    agent_->keeper()->Tick();  // sent at 10, answered at 18: over at 40
    clock_.Advance(absl::Seconds(21));
    EXPECT_TRUE(hooks.keep_going());
    clock_.Advance(absl::Seconds(1));
    EXPECT_FALSE(hooks.keep_going());
    return absl::CancelledError("stopped");
  };
  ASSERT_OK(agent_->Run());
}

TEST_F(AgentTest, ACancelledEvaluationIsGivenBack) {
  transport_.leases = 1;
  transport_.cancel = true;
  judge_ = [this](const PipelineHooks& hooks) {
    clock_.Advance(absl::Seconds(10));
    agent_->keeper()->Tick();
    EXPECT_FALSE(hooks.keep_going());
    return absl::CancelledError("stopped");
  };
  ASSERT_OK(agent_->Run());
  EXPECT_THAT(transport_.abandoned, ElementsAre("evaluations/1  "));
}

TEST_F(AgentTest, RenewalsSurviveARestartOfTheServerWhenTheLeaseIsKept) {
  transport_.leases = 1;
  transport_.renew_errors = {Aborted("SESSION_UNKNOWN")};
  judge_ = [this](const PipelineHooks& hooks) {
    clock_.Advance(absl::Seconds(10));
    agent_->keeper()->Tick();
    EXPECT_TRUE(hooks.keep_going());
    agent_->keeper()->Tick();  // at once, under the new session
    return absl::OkStatus();
  };
  ASSERT_OK(agent_->Run());
  EXPECT_THAT(transport_.held, ElementsAre("evaluations/1"));
  EXPECT_EQ(transport_.renewals.size(), 2u);
  EXPECT_THAT(transport_.completed, ElementsAre("evaluations/1"));
}

TEST_F(AgentTest, RenewalsStopTheWorkWhenTheRestartedServerDoesNotKeepTheLease) {
  transport_.leases = 1;
  transport_.keep_leases = false;
  transport_.renew_errors = {Aborted("SESSION_UNKNOWN")};
  judge_ = [this](const PipelineHooks& hooks) {
    clock_.Advance(absl::Seconds(10));
    agent_->keeper()->Tick();
    EXPECT_FALSE(hooks.keep_going());
    return absl::CancelledError("stopped");
  };
  ASSERT_OK(agent_->Run());
  EXPECT_THAT(transport_.completed, IsEmpty());
}

TEST_F(AgentTest, AnOutcomeIsDeliveredThroughFailuresAndRestarts) {
  transport_.leases = 1;
  transport_.complete_errors = {absl::UnavailableError("away"), absl::DeadlineExceededError("slow"),
                                Aborted("SESSION_UNKNOWN")};
  ASSERT_OK(agent_->Run());
  EXPECT_THAT(transport_.completed, ElementsAre("evaluations/1"));
  EXPECT_THAT(transport_.held, ElementsAre("evaluations/1"));
  EXPECT_EQ(transport_.complete_sessions.back(), "session-2");
  EXPECT_EQ(judged_, 1);
}

TEST_F(AgentTest, AFencedCompletionIsDropped) {
  transport_.leases = 2;
  transport_.complete_errors = {Aborted("LEASE_FENCED")};
  ASSERT_OK(agent_->Run());
  EXPECT_THAT(transport_.completed, ElementsAre("evaluations/2"));
  EXPECT_THAT(transport_.abandoned, IsEmpty());
}

TEST_F(AgentTest, ALeaseThatTheRestartedServerDoesNotKeepIsDropped) {
  transport_.leases = 1;
  transport_.keep_leases = false;
  transport_.complete_errors = {Aborted("SESSION_UNKNOWN")};
  ASSERT_OK(agent_->Run());
  EXPECT_THAT(transport_.completed, IsEmpty());
}

TEST_F(AgentTest, ARefusedOutcomeIsAFailureOfTheInfrastructure) {
  transport_.leases = 1;
  transport_.complete_errors = {absl::InvalidArgumentError("outcome without verdict")};
  ASSERT_OK(agent_->Run());
  EXPECT_THAT(transport_.abandoned, ElementsAre("evaluations/1 INTERNAL OUTCOME_REFUSED"));
}

TEST_F(AgentTest, AfterAFailureOfItsOwnTheWorkerChecksItselfFirst) {
  transport_.leases = 2;
  judge_ = [this](const PipelineHooks&) {
    if (judged_ > 1) return absl::OkStatus();
    return ErrorWithReason(absl::StatusCode::kResourceExhausted, "DISK_FULL", "no space left");
  };
  self_check_ = [this] {
    EXPECT_EQ(judged_, 1);
    return self_checks_ < 3 ? absl::UnavailableError("still sick") : absl::OkStatus();
  };
  ASSERT_OK(agent_->Run());
  EXPECT_EQ(self_checks_, 3);
  EXPECT_THAT(transport_.abandoned, ElementsAre("evaluations/1 RESOURCE_EXHAUSTED DISK_FULL"));
  EXPECT_THAT(transport_.completed, ElementsAre("evaluations/2"));
}

TEST_F(AgentTest, ASuspectDeviceProvesItselfBeforeTheNextLease) {
  transport_.leases = 2;
  is_suspect_ = [this] { return judged_ == 1; };
  self_check_ = [this] {
    EXPECT_EQ(judged_, 1);
    EXPECT_THAT(transport_.completed, ElementsAre("evaluations/1"));
    return absl::OkStatus();
  };
  ASSERT_OK(agent_->Run());
  EXPECT_EQ(self_checks_, 1);
  EXPECT_EQ(transport_.registrations, 1);
  EXPECT_THAT(transport_.completed, ElementsAre("evaluations/1", "evaluations/2"));
}

TEST_F(AgentTest, ASickDeviceIsReportedAndTakesNoLeases) {
  transport_.leases = 2;
  is_suspect_ = [this] { return judged_ == 1; };
  self_check_ = [this] {
    EXPECT_EQ(transport_.polls.size(), 1u);
    if (self_checks_ < 3) return absl::InternalError("the canary is wrong");
    EXPECT_THAT(transport_.caveats, ElementsAre("SELF_CHECK_FAILED"));
    return absl::OkStatus();
  };
  ASSERT_OK(agent_->Run());
  EXPECT_EQ(self_checks_, 3);
  // As it is at first, sick, and well again.
  EXPECT_EQ(transport_.registrations, 3);
  EXPECT_THAT(transport_.caveats, IsEmpty());
  EXPECT_THAT(transport_.completed, ElementsAre("evaluations/1", "evaluations/2"));
}

TEST_F(AgentTest, AFailureWithoutAReasonIsTheWorkers) {
  transport_.leases = 1;
  judge_ = [](const PipelineHooks&) {
    return absl::UnavailableError("the machine ran out of memory while compiling");
  };
  ASSERT_OK(agent_->Run());
  EXPECT_THAT(transport_.abandoned, ElementsAre("evaluations/1 UNAVAILABLE WORKER_FAILED"));
  EXPECT_THAT(transport_.completed, IsEmpty());
  EXPECT_EQ(self_checks_, 1);
}

TEST_F(AgentTest, DrainLetsTheRunningEvaluationFinish) {
  transport_.leases = 2;
  judge_ = [this](const PipelineHooks& hooks) {
    agent_->Drain();
    clock_.Advance(absl::Seconds(5));
    EXPECT_TRUE(hooks.keep_going());
    return absl::OkStatus();
  };
  ASSERT_OK(agent_->Run());
  EXPECT_THAT(transport_.completed, ElementsAre("evaluations/1"));
  EXPECT_EQ(transport_.leases, 1);
}

TEST_F(AgentTest, DrainGivesBackWhatTakesTooLong) {
  transport_.leases = 1;
  judge_ = [this](const PipelineHooks& hooks) {
    agent_->Drain();
    clock_.Advance(absl::Seconds(20));
    EXPECT_FALSE(hooks.keep_going());
    return absl::CancelledError("stopped");
  };
  ASSERT_OK(agent_->Run());
  EXPECT_THAT(transport_.abandoned, ElementsAre("evaluations/1  "));
  EXPECT_EQ(self_checks_, 0);
}

TEST_F(AgentTest, ADrainedWorkerDoesNotWaitForeverForTheServer) {
  transport_.leases = 1;
  for (int i = 0; i < 100'000; ++i) {
    transport_.complete_errors.push_back(absl::UnavailableError("away"));
  }
  judge_ = [this](const PipelineHooks&) {
    agent_->Drain();
    return absl::OkStatus();
  };
  ASSERT_OK(agent_->Run());
  EXPECT_LT(clock_.Monotonic(), absl::Seconds(25));
}

class FakeRunner : public RunnerClient {
 public:
  explicit FakeRunner(int slot) : slot(slot) {}
  absl::StatusOr<std::unique_ptr<internal::v1::RunnerReport>> Run(
      const internal::v1::RunnerRequest&, absl::Duration, const RunnerHooks&) override {
    return absl::UnimplementedError("a fake");
  }
  const int slot;
};

TEST(RunnerPoolTest, EveryRunnerIsFreshAndSlotsGoRound) {
  RunnerPoolOptions options;
  options.start = [](int slot, int guests) { return std::make_unique<FakeRunner>(slot); };
  options.slots = {7, 9};
  RunnerPool pool(options);
  std::vector<int> slots;
  for (int i = 0; i < 5; ++i) {
    ASSERT_OK_AND_ASSIGN(std::unique_ptr<RunnerClient> runner, pool.Take());
    slots.push_back(static_cast<FakeRunner*>(runner.get())->slot);
  }
  EXPECT_THAT(slots, ElementsAre(7, 8, 9, 7, 8));
}

TEST(RunnerPoolTest, RunnersStayInTheSlotsOfThisProcess) {
  const absl::StatusOr<SlotShare>& share = ProcessSlots();
  ASSERT_OK(share);
  RunnerPoolOptions options;
  options.start = [](int slot, int guests) { return std::make_unique<FakeRunner>(slot); };
  RunnerPool pool(options);
  for (int i = 0; i < 2 * kRunnersPerShare; ++i) {
    ASSERT_OK_AND_ASSIGN(std::unique_ptr<RunnerClient> runner, pool.Take());
    EXPECT_EQ(static_cast<FakeRunner*>(runner.get())->slot,
              share->runner_first + i % kRunnersPerShare);
  }
}

TEST(RunnerPoolTest, AFailureToStartReachesTheCaller) {
  RunnerPoolOptions options;
  options.start = [](int, int) -> absl::StatusOr<std::unique_ptr<RunnerClient>> {
    return absl::ResourceExhaustedError("fork");
  };
  RunnerPool pool(options);
  pool.Refill(2);
  EXPECT_THAT(pool.Take(), StatusIs(absl::StatusCode::kResourceExhausted));
}

}  // namespace
}  // namespace assay
