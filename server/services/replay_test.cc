// Replays, second runs and clones over gRPC.
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "server/services/service_fixture.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

class ReplayTest : public ServiceTest {
 protected:
  // Creates and judges one evaluation; its nonce is 77 unless the level is VERIFY.
  v1::Evaluation Judge(const std::string& session, v1::CreateEvaluationRequest request) {
    const v1::Evaluation created = Create(request);
    const internal::v1::Lease lease = Acquire(session, absl::StrCat("p", ++polls_));
    EXPECT_EQ(lease.ref().evaluation(), created.name());
    internal::v1::CompleteLeaseRequest complete;
    complete.set_session(session);
    *complete.mutable_ref() = lease.ref();
    v1::Outcome* outcome = complete.mutable_outcome();
    outcome->set_verdict(v1::PASSED);
    if (created.level() != v1::VERIFY) outcome->set_nonce(77);
    v1::WorkloadResult* result = outcome->add_workload_results();
    result->set_workload("small");
    result->mutable_measurement()->set_median_ns(42);
    internal::v1::CompleteLeaseResponse response;
    const grpc::Status status = worker_stub_->CompleteLease(Context().get(), complete, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return Get(created.name());
  }
  v1::Evaluation Get(const std::string& name) {
    v1::GetEvaluationRequest get;
    get.set_name(name);
    v1::Evaluation evaluation;
    const grpc::Status status = evaluation_stub_->GetEvaluation(Context().get(), get, &evaluation);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return evaluation;
  }
  grpc::Status Replay(const std::string& name, v1::Evaluation* replay,
                      const std::string& request_id = "") {
    v1::CreateEvaluationRequest request;
    request.mutable_evaluation()->set_replay_of(name);
    request.set_request_id(request_id);
    return evaluation_stub_->CreateEvaluation(Context().get(), request, replay);
  }

  int polls_ = 0;
};

TEST_F(ReplayTest, AReplayIsTheSameOnTheExactClassFromTheStoredNonce) {
  CreateTwice();
  const std::string session = RegisterWorker("w1");
  v1::CreateEvaluationRequest request = InlineRequest();
  request.mutable_evaluation()->set_level(v1::QUICK);
  request.mutable_evaluation()->add_workloads()->set_name("small");
  const v1::Evaluation original = Judge(session, request);
  EXPECT_EQ(original.device_class(), "cpu");
  v1::Evaluation replay;
  ASSERT_RPC_OK(Replay(original.name(), &replay, "r1"));
  EXPECT_EQ(replay.state(), v1::QUEUED);
  EXPECT_EQ(replay.replay_of(), original.name());
  EXPECT_EQ(replay.device_class(), "cpu-test-avx2");
  EXPECT_EQ(replay.candidate(), original.candidate());
  EXPECT_EQ(replay.candidate_label(), "plain");
  EXPECT_EQ(replay.problem(), original.problem());
  EXPECT_EQ(replay.level(), v1::QUICK);
  EXPECT_EQ(replay.workloads_size(), 1);
  v1::Evaluation again;
  ASSERT_RPC_OK(Replay(original.name(), &again, "r1"));
  EXPECT_EQ(again.name(), replay.name());
  const internal::v1::Lease lease = Acquire(session, "replay");
  EXPECT_EQ(lease.work().nonce(), 77u);
  EXPECT_EQ(lease.work().candidate().files_size(), 1);
}

TEST_F(ReplayTest, WhatCannotBeReplayedSaysWhy) {
  CreateTwice();
  v1::Evaluation ignored;
  EXPECT_EQ(ReasonOf(Replay("evaluations/none", &ignored)), "EVALUATION_NOT_FOUND");
  EXPECT_EQ(ReasonOf(Replay("candidates/none", &ignored)), "NAME_INVALID");
  const v1::Evaluation queued = Create(InlineRequest());
  grpc::Status refused = Replay(queued.name(), &ignored);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(ReasonOf(refused), "REPLAY_NO_OUTCOME");
  v1::CancelEvaluationRequest cancel;
  cancel.set_name(queued.name());
  ASSERT_RPC_OK(evaluation_stub_->CancelEvaluation(Context().get(), cancel, &ignored));
  EXPECT_EQ(ReasonOf(Replay(queued.name(), &ignored)), "REPLAY_NO_OUTCOME");

  const std::string session = RegisterWorker("w1");
  v1::CreateEvaluationRequest request = InlineRequest();
  request.mutable_evaluation()->set_level(v1::VERIFY);
  EXPECT_EQ(ReasonOf(Replay(Judge(session, request).name(), &ignored)), "REPLAY_NO_NONCE");
}

TEST_F(ReplayTest, AClassThatNobodyOffersIsRefused) {
  CreateTwice();
  // As after a restart on other machines.
  NewEvaluation old;
  old.evaluation = Create(InlineRequest());
  old.evaluation.set_name("evaluations/old");
  old.evaluation.set_state(v1::SUCCEEDED);
  old.evaluation.set_device_class("cpu-gone-avx2");
  old.evaluation.mutable_outcome()->set_verdict(v1::PASSED);
  old.evaluation.mutable_outcome()->set_nonce(1);
  absl::Notification stored;
  store_.CreateEvaluations({old}, [&](auto created) {
    EXPECT_OK(created.status());
    stored.Notify();
  });
  stored.WaitForNotification();
  RegisterWorker("w1");
  v1::Evaluation ignored;
  const grpc::Status refused = Replay("evaluations/old", &ignored);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(ReasonOf(refused), "DEVICE_CLASS_NOT_OFFERED");
  EXPECT_THAT(refused.error_message(), HasSubstr("'cpu-gone-avx2'"));
}

TEST_F(ReplayTest, TheFirstOfABoardIsConfirmedByTheServerItself) {
  CreateTwice();
  AdmitTwice();
  const std::string session = RegisterWorker("w1");
  v1::CreateEvaluationRequest request = InlineRequest();
  request.mutable_evaluation()->set_level(v1::RANKED);
  request.mutable_evaluation()->set_confirms("evaluations/none");  // not for clients to say
  const v1::Evaluation first = Judge(session, request);
  EXPECT_EQ(first.confirms(), "");
  v1::GetLeaderboardRequest board;
  board.set_problem("problems/twice");
  v1::GetLeaderboardResponse response;
  ASSERT_RPC_OK(leaderboard_stub_->GetLeaderboard(Context().get(), board, &response));
  ASSERT_EQ(response.entries_size(), 1);
  EXPECT_EQ(response.entries(0).confirmation(), v1::LeaderboardEntry::PENDING);
  EXPECT_EQ(response.entries(0).rank(), 0);
  const internal::v1::Lease lease = Acquire(session, "second");
  EXPECT_EQ(lease.work().evaluation().confirms(), first.name());
  Complete(session, lease);
  ASSERT_RPC_OK(leaderboard_stub_->GetLeaderboard(Context().get(), board, &response));
  ASSERT_EQ(response.entries_size(), 1);
  EXPECT_EQ(response.entries(0).confirmation(), v1::LeaderboardEntry::CONFIRMED);
  EXPECT_EQ(response.entries(0).confirmed_by(), lease.ref().evaluation());
  board.set_contract("none");
  ASSERT_RPC_OK(leaderboard_stub_->GetLeaderboard(Context().get(), board, &response));
  EXPECT_EQ(response.entries_size(), 0);
}

TEST_F(ReplayTest, ACopyIsNamedAsAClone) {
  CreateTwice();
  v1::CreateCandidateRequest create;
  *create.mutable_candidate() = TwiceCandidate();
  v1::Candidate original;
  ASSERT_RPC_OK(candidate_stub_->CreateCandidate(Context().get(), create, &original));
  EXPECT_EQ(original.clone_of(), "");
  // One over each way in.
  create.mutable_candidate()->mutable_files(0)->mutable_content()->append("// mine\n");
  create.mutable_candidate()->set_clone_of("candidates/none");
  v1::Candidate copy;
  ASSERT_RPC_OK(candidate_stub_->CreateCandidate(Context().get(), create, &copy));
  EXPECT_NE(copy.name(), original.name());
  EXPECT_EQ(copy.clone_of(), original.name());
  const v1::Evaluation evaluation = Create(InlineRequest("", "/* also mine */\n"));
  v1::GetCandidateRequest get;
  get.set_name(evaluation.candidate());
  ASSERT_RPC_OK(candidate_stub_->GetCandidate(Context().get(), get, &copy));
  EXPECT_EQ(copy.clone_of(), original.name());
  const v1::Evaluation other = Create(InlineRequest("", "int unused = 3;\n"));
  get.set_name(other.candidate());
  ASSERT_RPC_OK(candidate_stub_->GetCandidate(Context().get(), get, &copy));
  EXPECT_EQ(copy.clone_of(), "");
}

}  // namespace
}  // namespace assay
