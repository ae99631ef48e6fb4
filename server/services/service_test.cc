// Problems, candidates, leaderboard and fleet over gRPC, and what happens when the storage is
// stuck.
#include <grpcpp/generic/generic_stub.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "server/services/service_fixture.h"

namespace assay {
namespace {

// The bytes of grpc.health.v1.HealthCheckResponse for the whole server.
std::string HealthCheck(const std::shared_ptr<grpc::Channel>& channel,
                        grpc::ClientContext* context) {
  grpc::GenericStub stub(channel);
  const grpc::Slice empty;
  const grpc::ByteBuffer request(&empty, 1);
  grpc::ByteBuffer response;
  grpc::Status status;
  absl::Notification done;
  stub.UnaryCall(context, "/grpc.health.v1.Health/Check", {}, &request, &response,
                 [&](grpc::Status result) {
                   status = std::move(result);
                   done.Notify();
                 });
  done.WaitForNotification();
  if (!status.ok()) return status.error_message();
  grpc::Slice slice;
  return response.DumpToSingleSlice(&slice).ok()
             ? std::string(reinterpret_cast<const char*>(slice.begin()), slice.size())
             : "no single slice";
}

// One asynchronous call with all that must live as long as it.
template <typename Request, typename Response>
struct AsyncCall {
  grpc::ClientContext context;
  Request request;
  Response response;
  grpc::Status status;
};

// Hundreds of calls hang in the storage, reads and writes; calls that need no storage are answered
// all the same, and the reads beyond the bound are refused instead of queued.
TEST_F(ServiceTest, BlockedStorageDoesNotBlockFastCalls) {
  CreateTwice();
  store_.Stick();
  store_.BlockWrites();
  using Get = AsyncCall<v1::GetEvaluationRequest, v1::Evaluation>;
  using New = AsyncCall<v1::CreateEvaluationRequest, v1::Evaluation>;
  constexpr size_t kCalls = 300;
  std::vector<std::unique_ptr<Get>> gets;
  std::vector<std::unique_ptr<New>> creates;
  std::atomic<size_t> done = 0;
  for (size_t i = 0; i < kCalls; ++i) {
    gets.push_back(std::make_unique<Get>());
    Get* get = gets.back().get();
    get->request.set_name("evaluations/none");
    evaluation_stub_->async()->GetEvaluation(&get->context, &get->request, &get->response,
                                             [get, &done](grpc::Status status) {
                                               get->status = std::move(status);
                                               ++done;
                                             });
    creates.push_back(std::make_unique<New>());
    New* create = creates.back().get();
    create->request = InlineRequest(absl::StrCat("r", i));
    evaluation_stub_->async()->CreateEvaluation(&create->context, &create->request,
                                                &create->response,
                                                [create, &done](grpc::Status status) {
                                                  create->status = std::move(status);
                                                  ++done;
                                                });
  }
  store_.WaitForBlockedReads(2);
  store_.WaitForPending(kCalls);
  while (reads_.queued() + 2 < kCalls) std::this_thread::yield();

  // All 600 hang now. Health, and what is answered from memory:
  EXPECT_EQ(HealthCheck(channel_, Context().get()), "\x08\x01");  // SERVING
  v1::Worker worker;
  v1::GetWorkerRequest get_worker;
  get_worker.set_name("workers/none");
  const grpc::Status unknown = fleet_stub_->GetWorker(Context().get(), get_worker, &worker);
  EXPECT_EQ(unknown.error_code(), grpc::StatusCode::NOT_FOUND) << unknown.error_message();
  v1::ListWorkersResponse workers;
  ASSERT_RPC_OK(fleet_stub_->ListWorkers(Context().get(), {}, &workers));
  v1::CreateEvaluationRequest bad = InlineRequest();
  bad.mutable_evaluation()->set_device_class("tpu");
  v1::Evaluation ignored;
  EXPECT_EQ(ReasonOf(evaluation_stub_->CreateEvaluation(Context().get(), bad, &ignored)),
            "DEVICE_CLASS_INVALID");
  EXPECT_EQ(done, 0u) << "a call finished although the storage is stuck";

  // The queue of reads is bounded.
  std::vector<std::unique_ptr<Get>> more;
  std::atomic<size_t> more_done = 0;
  constexpr size_t kMore = 200;
  for (size_t i = 0; i < kMore; ++i) {
    more.push_back(std::make_unique<Get>());
    Get* get = more.back().get();
    get->request.set_name("evaluations/none");
    evaluation_stub_->async()->GetEvaluation(&get->context, &get->request, &get->response,
                                             [get, &more_done](grpc::Status status) {
                                               get->status = std::move(status);
                                               ++more_done;
                                             });
  }
  const size_t refused_count = kCalls + kMore - 2 - kReadsMax;
  while (more_done < refused_count) std::this_thread::yield();
  EXPECT_EQ(done, 0u);

  store_.Unstick();
  store_.ReleaseWrites();
  while (done < 2 * kCalls || more_done < kMore) std::this_thread::yield();
  for (const auto& get : gets) {
    EXPECT_EQ(get->status.error_code(), grpc::StatusCode::NOT_FOUND);
  }
  size_t refused = 0;
  for (const auto& get : more) refused += ReasonOf(get->status) == "OVERLOADED";
  EXPECT_EQ(refused, refused_count);
  for (const auto& create : creates) {
    EXPECT_TRUE(create->status.ok()) << create->status.error_message();
  }
  EXPECT_EQ(writes_.in_flight(), 0u);
}

TEST_F(ServiceTest, ProblemsRoundTrip) {
  CreateTwice();
  v1::CreateProblemRequest request;
  *request.mutable_problem() = TwiceProblem();
  v1::Problem stored;
  ASSERT_RPC_OK(problem_stub_->CreateProblem(Context().get(), request, &stored));
  EXPECT_EQ(stored.digest().size(), 64u);
  request.mutable_problem()->mutable_files(0)->mutable_content()->append("// changed\n");
  v1::Problem ignored;
  const grpc::Status clash = problem_stub_->CreateProblem(Context().get(), request, &ignored);
  EXPECT_EQ(clash.error_code(), grpc::StatusCode::ALREADY_EXISTS);
  EXPECT_EQ(ReasonOf(clash), "PROBLEM_VERSION_EXISTS");
  request.set_validate_only(true);
  EXPECT_EQ(ReasonOf(problem_stub_->CreateProblem(Context().get(), request, &ignored)),
            "PROBLEM_VERSION_EXISTS")
      << "validate_only refuses what the call refuses";
  request.mutable_problem()->set_version(2);
  ASSERT_RPC_OK(problem_stub_->CreateProblem(Context().get(), request, &ignored));
  v1::GetProblemRequest get;
  get.set_name("problems/twice");
  ASSERT_RPC_OK(problem_stub_->GetProblem(Context().get(), get, &stored));
  EXPECT_EQ(stored.version(), 1) << "validate_only stores nothing";
  EXPECT_EQ(stored.files_size(), 1);
  request.set_validate_only(false);
  ASSERT_RPC_OK(problem_stub_->CreateProblem(Context().get(), request, &ignored));
  EXPECT_EQ(catalogue_.Find("problems/twice")->version(), 2);
  // An older version: the one that is stored, or none.
  for (const bool validate_only : {true, false}) {
    v1::CreateProblemRequest older;
    older.set_validate_only(validate_only);
    *older.mutable_problem() = TwiceProblem();
    ASSERT_RPC_OK(problem_stub_->CreateProblem(Context().get(), older, &ignored));
    older.mutable_problem()->set_summary("c = a + a");
    const grpc::Status renamed = problem_stub_->CreateProblem(Context().get(), older, &ignored);
    EXPECT_EQ(ReasonOf(renamed), "PROBLEM_VERSION_EXISTS");
    EXPECT_THAT(renamed.error_message(), ::testing::HasSubstr("another summary"));
  }
  v1::ListProblemsResponse list;
  ASSERT_RPC_OK(problem_stub_->ListProblems(Context().get(), {}, &list));
  ASSERT_EQ(list.problems_size(), 1);
  EXPECT_EQ(list.problems(0).version(), 2);
  get.set_name("problems/none");
  EXPECT_EQ(problem_stub_->GetProblem(Context().get(), get, &ignored).error_code(),
            grpc::StatusCode::NOT_FOUND);
  request.mutable_problem()->clear_tensors();
  EXPECT_EQ(problem_stub_->CreateProblem(Context().get(), request, &ignored).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(ServiceTest, CandidatesRoundTrip) {
  CreateTwice();
  v1::CreateCandidateRequest request;
  *request.mutable_candidate() = TwiceCandidate();
  v1::Candidate first;
  ASSERT_RPC_OK(candidate_stub_->CreateCandidate(Context().get(), request, &first));
  v1::Candidate again;
  ASSERT_RPC_OK(candidate_stub_->CreateCandidate(Context().get(), request, &again));
  EXPECT_EQ(first.name(), again.name());
  *request.mutable_candidate() = TwiceCandidate("twice", "// b\n");
  v1::Candidate other;
  ASSERT_RPC_OK(candidate_stub_->CreateCandidate(Context().get(), request, &other));
  EXPECT_NE(first.name(), other.name());
  v1::GetCandidateRequest get;
  get.set_name(first.name());
  v1::Candidate got;
  ASSERT_RPC_OK(candidate_stub_->GetCandidate(Context().get(), get, &got));
  EXPECT_EQ(got.files_size(), 1);

  v1::ListCandidatesRequest list;
  list.set_problem("problems/twice");
  list.set_page_size(1);
  v1::ListCandidatesResponse page;
  ASSERT_RPC_OK(candidate_stub_->ListCandidates(Context().get(), list, &page));
  ASSERT_EQ(page.candidates_size(), 1);
  EXPECT_EQ(page.candidates(0).name(), other.name());
  list.set_page_token(page.next_page_token());
  ASSERT_RPC_OK(candidate_stub_->ListCandidates(Context().get(), list, &page));
  ASSERT_EQ(page.candidates_size(), 1);
  EXPECT_EQ(page.candidates(0).name(), first.name());
  list.clear_problem();
  EXPECT_EQ(ReasonOf(candidate_stub_->ListCandidates(Context().get(), list, &page)),
            "PAGE_TOKEN_INVALID");
  list.clear_page_token();
  list.set_problem("problems/none");
  const grpc::Status unknown = candidate_stub_->ListCandidates(Context().get(), list, &page);
  EXPECT_EQ(unknown.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(ReasonOf(unknown), "PROBLEM_NOT_FOUND");
}

TEST_F(ServiceTest, FleetPagesAndDrains) {
  for (const char* name : {"w3", "w1", "w2"}) RegisterWorker(name);
  v1::ListWorkersRequest list;
  list.set_page_size(2);
  v1::ListWorkersResponse page;
  ASSERT_RPC_OK(fleet_stub_->ListWorkers(Context().get(), list, &page));
  ASSERT_EQ(page.workers_size(), 2);
  EXPECT_EQ(page.workers(0).name(), "workers/w1");
  list.set_page_token(page.next_page_token());
  ASSERT_RPC_OK(fleet_stub_->ListWorkers(Context().get(), list, &page));
  ASSERT_EQ(page.workers_size(), 1);
  EXPECT_EQ(page.workers(0).name(), "workers/w3");
  EXPECT_EQ(page.next_page_token(), "");
  v1::DrainWorkerRequest drain;
  drain.set_name("workers/w2");
  v1::Worker worker;
  ASSERT_RPC_OK(fleet_stub_->DrainWorker(Context().get(), drain, &worker));
  EXPECT_EQ(worker.state(), v1::Worker::DRAINING);
  v1::UndrainWorkerRequest undrain;
  undrain.set_name("workers/w2");
  ASSERT_RPC_OK(fleet_stub_->UndrainWorker(Context().get(), undrain, &worker));
  EXPECT_EQ(worker.state(), v1::Worker::ACTIVE);
  drain.set_name("workers/none");
  EXPECT_EQ(ReasonOf(fleet_stub_->DrainWorker(Context().get(), drain, &worker)),
            "WORKER_NOT_FOUND");
}

TEST_F(ServiceTest, AuditsAreOfTheStoredContent) {
  CreateTwice();
  v1::GetProblemRequest get;
  get.set_name("problems/twice");
  v1::Problem problem;
  ASSERT_RPC_OK(problem_stub_->GetProblem(Context().get(), get, &problem));
  EXPECT_FALSE(problem.has_audit());

  v1::RecordProblemAuditRequest request;
  v1::ProblemAudit& audit = *request.mutable_audit();
  v1::Problem recorded;
  const auto reason = [&] {
    return ReasonOf(problem_stub_->RecordProblemAudit(Context().get(), request, &recorded));
  };
  EXPECT_EQ(reason(), "NAME_INVALID");
  audit.set_problem("problems/none");
  audit.set_problem_version(1);
  audit.set_passed(true);
  EXPECT_EQ(reason(), "PROBLEM_NOT_FOUND");
  audit.set_problem("problems/twice");
  EXPECT_EQ(reason(), "AUDIT_STALE");
  audit.set_problem_digest(problem.digest());
  ASSERT_RPC_OK(problem_stub_->RecordProblemAudit(Context().get(), request, &recorded));
  EXPECT_EQ(recorded.audit().state(), v1::ProblemAuditSummary::ADMITTED);
  EXPECT_TRUE(recorded.audit().has_time());
  ASSERT_RPC_OK(problem_stub_->GetProblem(Context().get(), get, &problem));
  EXPECT_EQ(problem.audit().state(), v1::ProblemAuditSummary::ADMITTED);

  // What a client says of the audit when it creates the problem counts for nothing.
  v1::CreateProblemRequest create;
  *create.mutable_problem() = TwiceProblem();
  create.mutable_problem()->set_version(2);
  create.mutable_problem()->mutable_files(0)->mutable_content()->append("// changed\n");
  create.mutable_problem()->mutable_audit()->set_state(v1::ProblemAuditSummary::ADMITTED);
  ASSERT_RPC_OK(problem_stub_->CreateProblem(Context().get(), create, &problem));
  EXPECT_FALSE(problem.has_audit());
}

TEST_F(ServiceTest, LeaderboardNeedsKnownNames) {
  CreateTwice();
  v1::GetLeaderboardRequest request;
  v1::GetLeaderboardResponse response;
  request.set_problem("problems/twice");
  ASSERT_RPC_OK(leaderboard_stub_->GetLeaderboard(Context().get(), request, &response));
  EXPECT_EQ(response.entries_size(), 0);
  request.set_problem("problems/none");
  EXPECT_EQ(ReasonOf(leaderboard_stub_->GetLeaderboard(Context().get(), request, &response)),
            "PROBLEM_NOT_FOUND");
  request.set_problem("problems/twice");
  const std::pair<const char*, const char*> workloads[] = {{"small", ""},
                                                           {"n=77", ""},
                                                           {"smal", "WORKLOAD_NOT_FOUND"},
                                                           {"m=77", "WORKLOAD_INVALID"},
                                                           {"no name", "WORKLOAD_INVALID"}};
  for (const auto& [workload, reason] : workloads) {
    request.set_workload(workload);
    EXPECT_EQ(ReasonOf(leaderboard_stub_->GetLeaderboard(Context().get(), request, &response)),
              reason)
        << workload;
  }
  request.clear_workload();
  RegisterWorker("w1");
  request.set_device_class("cpu-test-avx2");
  ASSERT_RPC_OK(leaderboard_stub_->GetLeaderboard(Context().get(), request, &response));
  request.set_device_class("cpu-test-avx512");
  const grpc::Status unknown =
      leaderboard_stub_->GetLeaderboard(Context().get(), request, &response);
  EXPECT_EQ(unknown.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(ReasonOf(unknown), "DEVICE_CLASS_NOT_FOUND");
  EXPECT_THAT(unknown.error_message(), ::testing::HasSubstr("known: cpu-test-avx2"));
  request.clear_device_class();
  request.clear_problem();
  EXPECT_EQ(ReasonOf(leaderboard_stub_->GetLeaderboard(Context().get(), request, &response)),
            "NAME_INVALID");
}

TEST_F(ServiceTest, NothingRanksOnAWorkloadThatIsOnlyVerified) {
  v1::CreateProblemRequest create;
  *create.mutable_problem() = TwiceProblem();
  v1::Workload* ragged = create.mutable_problem()->add_workloads();
  ragged->set_name("ragged");
  ragged->set_verify_only(true);
  (*ragged->mutable_axes())["n"] = 13;
  v1::Problem problem;
  ASSERT_RPC_OK(problem_stub_->CreateProblem(Context().get(), create, &problem));
  v1::GetLeaderboardRequest request;
  request.set_problem("problems/twice");
  request.set_workload("ragged");
  v1::GetLeaderboardResponse response;
  const grpc::Status status =
      leaderboard_stub_->GetLeaderboard(Context().get(), request, &response);
  EXPECT_EQ(ReasonOf(status), "NOTHING_TO_MEASURE");
  EXPECT_THAT(status.error_message(), ::testing::HasSubstr("measured are: small, large"));
}

// Storage that fails reaches the client as its error, and nothing leaks.
TEST_F(ServiceTest, AFullDiskIsReported) {
  CreateTwice();
  store_.FailNextWrite(
      ErrorWithReason(absl::StatusCode::kResourceExhausted, "STORAGE_FULL", "the disk is full"));
  v1::Evaluation ignored;
  const grpc::Status full =
      evaluation_stub_->CreateEvaluation(Context().get(), InlineRequest("r"), &ignored);
  EXPECT_EQ(full.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ReasonOf(full), "STORAGE_FULL");
  EXPECT_EQ(writes_.in_flight(), 0u);
  EXPECT_EQ(dispatcher_->Counters().queued, 0);
  EXPECT_EQ(Create(InlineRequest("r")).state(), v1::QUEUED);
}

}  // namespace
}  // namespace assay
