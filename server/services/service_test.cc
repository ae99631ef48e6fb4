// The public API over a real gRPC port, on a store in memory and the real dispatcher.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "assay/internal/v1/dispatch.grpc.pb.h"
#include "assay/v1/candidate.grpc.pb.h"
#include "assay/v1/evaluation.grpc.pb.h"
#include "assay/v1/fleet.grpc.pb.h"
#include "assay/v1/leaderboard.grpc.pb.h"
#include "assay/v1/problem.grpc.pb.h"
#include "base/limits.h"
#include "base/test_matchers.h"
#include "gtest/gtest.h"
#include "server/dispatch/dispatch_service.h"
#include "server/dispatch/dispatcher.h"
#include "server/executor.h"
#include "server/metrics.h"
#include "server/services/admission.h"
#include "server/services/candidate_service.h"
#include "server/services/catalogue.h"
#include "server/services/context.h"
#include "server/services/evaluation_service.h"
#include "server/services/fleet_service.h"
#include "server/services/identity.h"
#include "server/services/ids.h"
#include "server/services/leaderboard_service.h"
#include "server/services/problem_service.h"
#include "server/services/test_problem.h"
#include "server/services/watch_hub.h"
#include "store/testing/fake_store.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

// A store whose reads of evaluations hang while it is stuck.
class StickyStore : public FakeStore {
 public:
  void Stick() {
    absl::MutexLock lock(&mutex_);
    stuck_ = true;
  }
  void Unstick() {
    absl::MutexLock lock(&mutex_);
    stuck_ = false;
  }
  void WaitForBlockedReads(int count) {
    absl::MutexLock lock(&mutex_);
    const auto enough = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return blocked_ >= count; };
    mutex_.Await(absl::Condition(&enough));
  }
  absl::StatusOr<v1::Evaluation> GetEvaluation(std::string_view name, bool samples) override {
    {
      absl::MutexLock lock(&mutex_);
      ++blocked_;
      const auto free = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !stuck_; };
      mutex_.Await(absl::Condition(&free));
      --blocked_;
    }
    return FakeStore::GetEvaluation(name, samples);
  }

 private:
  absl::Mutex mutex_;
  bool stuck_ ABSL_GUARDED_BY(mutex_) = false;
  int blocked_ ABSL_GUARDED_BY(mutex_) = 0;
};

std::string ReasonOf(const grpc::Status& status) {
  v1::ErrorDetail detail;
  return detail.ParseFromString(status.error_details()) ? detail.reason() : "";
}

#define ASSERT_RPC_OK(expr)                                                                        \
  do {                                                                                             \
    const grpc::Status rpc_status = (expr);                                                        \
    ASSERT_TRUE(rpc_status.ok()) << rpc_status.error_code() << ": " << rpc_status.error_message(); \
  } while (false)

class ServiceTest : public ::testing::Test {
 protected:
  static constexpr size_t kReadsMax = 400;
  static constexpr size_t kWatchersMax = 4;

  void SetUp() override {
    DispatcherOptions options;
    options.clock = SystemClock();
    options.store = &store_;
    options.identity = [this](const v1::Evaluation& evaluation, const v1::Worker& worker,
                              const v1::Device& device) {
      const auto problem = catalogue_.Find(evaluation.problem());
      return problem == nullptr ? std::string()
                                : EvaluationIdentity(evaluation, *problem, worker.environment(),
                                                     device.device_class());
    };
    ASSERT_OK_AND_ASSIGN(dispatcher_, Dispatcher::Create(options));
    dispatcher_->SetObserver([this](const v1::Evaluation& evaluation) {
      metrics_.CountTransition(evaluation);
      watches_.Publish(evaluation);
    });
    ServiceContext context;
    context.clock = SystemClock();
    context.store = &store_;
    context.dispatcher = dispatcher_.get();
    context.reads = &reads_;
    context.writes = &writes_;
    context.catalogue = &catalogue_;
    context.candidates = &candidates_;
    context.admission = &admission_;
    context.watches = &watches_;
    context.metrics = &metrics_;
    services_.push_back(MakeProblemService(context));
    services_.push_back(MakeCandidateService(context));
    services_.push_back(MakeEvaluationService(context));
    services_.push_back(MakeLeaderboardService(context));
    services_.push_back(MakeFleetService(context));
    services_.push_back(NewDispatchService(dispatcher_.get()));
    grpc::EnableDefaultHealthCheckService(true);
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.SetMaxReceiveMessageSize(static_cast<int>(limits::kMessageBytesMax));
    for (const auto& service : services_) builder.RegisterService(service.get());
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    channel_ =
        grpc::CreateChannel(absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials());
    problem_stub_ = v1::ProblemService::NewStub(channel_);
    candidate_stub_ = v1::CandidateService::NewStub(channel_);
    evaluation_stub_ = v1::EvaluationService::NewStub(channel_);
    leaderboard_stub_ = v1::LeaderboardService::NewStub(channel_);
    fleet_stub_ = v1::FleetService::NewStub(channel_);
    worker_stub_ = internal::v1::DispatchService::NewStub(channel_);
  }

  void TearDown() override {
    store_.Unstick();
    store_.ReleaseWrites();
    watches_.Shutdown();
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
    reads_.Shutdown();
    store_.Shutdown();
    services_.clear();
    dispatcher_.reset();
  }

  // A deadline far beyond any honest answer, so that a hang fails instead of hanging.
  static std::unique_ptr<grpc::ClientContext> Context() {
    auto context = std::make_unique<grpc::ClientContext>();
    context->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    return context;
  }

  void CreateTwice() {
    v1::CreateProblemRequest request;
    *request.mutable_problem() = TwiceProblem();
    v1::Problem problem;
    ASSERT_RPC_OK(problem_stub_->CreateProblem(Context().get(), request, &problem));
  }

  static v1::CreateEvaluationRequest InlineRequest(const std::string& request_id = "",
                                                   const std::string& body = "") {
    v1::CreateEvaluationRequest request;
    request.mutable_evaluation()->set_problem("problems/twice");
    *request.mutable_candidate() = TwiceCandidate("twice", body);
    request.set_request_id(request_id);
    return request;
  }

  v1::Evaluation Create(const v1::CreateEvaluationRequest& request) {
    v1::Evaluation evaluation;
    const grpc::Status status =
        evaluation_stub_->CreateEvaluation(Context().get(), request, &evaluation);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return evaluation;
  }

  std::string RegisterWorker(const std::string& name) {
    internal::v1::RegisterWorkerRequest request;
    request.set_worker(name);
    request.set_lease_count_max(4);
    v1::Worker* worker = request.mutable_description();
    worker->set_name("workers/" + name);
    worker->set_version("1");
    v1::Device* device = worker->add_devices();
    device->set_name("workers/" + name + "/devices/0");
    device->set_kind("cpu");
    device->set_device_class("cpu-test-avx2");
    worker->mutable_environment()->set_harness_version("h");
    worker->mutable_environment()->set_compiler("g++");
    worker->mutable_environment()->set_instruction_set("avx2");
    internal::v1::RegisterWorkerResponse response;
    const grpc::Status status = worker_stub_->RegisterWorker(Context().get(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.session();
  }

  internal::v1::Lease Acquire(const std::string& session, const std::string& poll_id) {
    internal::v1::AcquireLeaseRequest request;
    request.set_session(session);
    request.set_poll_id(poll_id);
    request.mutable_wait()->set_seconds(30);
    internal::v1::AcquireLeaseResponse response;
    const grpc::Status status = worker_stub_->AcquireLease(Context().get(), request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.lease();
  }

  void Renew(const std::string& session, const internal::v1::Lease& lease,
             const std::string& stage) {
    internal::v1::RenewLeaseRequest request;
    request.set_session(session);
    *request.mutable_ref() = lease.ref();
    request.set_stage(stage);
    internal::v1::RenewLeaseResponse response;
    ASSERT_RPC_OK(worker_stub_->RenewLease(Context().get(), request, &response));
  }

  void Complete(const std::string& session, const internal::v1::Lease& lease) {
    internal::v1::CompleteLeaseRequest request;
    request.set_session(session);
    *request.mutable_ref() = lease.ref();
    request.mutable_outcome()->set_verdict(v1::PASSED);
    v1::WorkloadResult* result = request.mutable_outcome()->add_workload_results();
    result->set_workload("small");
    result->set_device("workers/w1/devices/0");
    result->mutable_measurement()->set_median_ns(42);
    result->mutable_measurement()->add_runners()->add_warm_ns(42);
    internal::v1::CompleteLeaseResponse response;
    ASSERT_RPC_OK(worker_stub_->CompleteLease(Context().get(), request, &response));
  }

  StickyStore store_;
  Metrics metrics_{"test"};
  Catalogue catalogue_;
  CandidateCache candidates_{100};
  EvaluationIds ids_{SystemClock()};
  Admission admission_{{.clock = SystemClock(), .catalogue = &catalogue_, .ids = &ids_}};
  WatchHub watches_{kWatchersMax};
  WriteBudget writes_{1000, 64 << 20};
  Executor reads_{2, kReadsMax};
  std::unique_ptr<Dispatcher> dispatcher_;
  std::vector<std::unique_ptr<grpc::Service>> services_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::ProblemService::Stub> problem_stub_;
  std::unique_ptr<v1::CandidateService::Stub> candidate_stub_;
  std::unique_ptr<v1::EvaluationService::Stub> evaluation_stub_;
  std::unique_ptr<v1::LeaderboardService::Stub> leaderboard_stub_;
  std::unique_ptr<v1::FleetService::Stub> fleet_stub_;
  std::unique_ptr<internal::v1::DispatchService::Stub> worker_stub_;
};

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
  request.mutable_problem()->set_version(2);
  request.set_validate_only(true);
  ASSERT_RPC_OK(problem_stub_->CreateProblem(Context().get(), request, &ignored));
  v1::GetProblemRequest get;
  get.set_name("problems/twice");
  ASSERT_RPC_OK(problem_stub_->GetProblem(Context().get(), get, &stored));
  EXPECT_EQ(stored.version(), 1) << "validate_only stores nothing";
  EXPECT_EQ(stored.files_size(), 1);
  request.set_validate_only(false);
  ASSERT_RPC_OK(problem_stub_->CreateProblem(Context().get(), request, &ignored));
  EXPECT_EQ(catalogue_.Find("problems/twice")->version(), 2);
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
}

TEST_F(ServiceTest, CreationIsIdempotentByRequestId) {
  CreateTwice();
  const v1::Evaluation first = Create(InlineRequest("r1"));
  EXPECT_EQ(first.state(), v1::QUEUED);
  EXPECT_THAT(first.waiting_reason(), HasSubstr("cpu"));
  EXPECT_EQ(Create(InlineRequest("r1")).name(), first.name());
  v1::Evaluation ignored;
  const grpc::Status reused = evaluation_stub_->CreateEvaluation(
      Context().get(), InlineRequest("r1", "// other\n"), &ignored);
  EXPECT_EQ(reused.error_code(), grpc::StatusCode::ALREADY_EXISTS);
  EXPECT_EQ(ReasonOf(reused), "REQUEST_ID_REUSED");
  // By name the same candidate and content are the same request.
  v1::CreateEvaluationRequest by_name;
  by_name.mutable_evaluation()->set_candidate(first.candidate());
  by_name.set_request_id("r1");
  EXPECT_EQ(Create(by_name).name(), first.name());
  EXPECT_EQ(dispatcher_->Counters().queued, 1);
}

TEST_F(ServiceTest, BatchesAreAllOrNothing) {
  CreateTwice();
  v1::BatchCreateEvaluationsRequest request;
  v1::BatchCreateEvaluationsResponse response;
  EXPECT_EQ(ReasonOf(evaluation_stub_->BatchCreateEvaluations(Context().get(), request, &response)),
            "BATCH_SIZE_INVALID");
  for (int i = 0; i < 3; ++i) {
    *request.add_requests() = InlineRequest(absl::StrCat("b", i), absl::StrCat("// ", i, "\n"));
  }
  request.mutable_requests(2)->mutable_evaluation()->set_priority(1000);
  const grpc::Status refused =
      evaluation_stub_->BatchCreateEvaluations(Context().get(), request, &response);
  EXPECT_EQ(ReasonOf(refused), "PRIORITY_INVALID");
  EXPECT_THAT(refused.error_message(), HasSubstr("requests[2]"));
  v1::ListEvaluationsResponse list;
  ASSERT_RPC_OK(evaluation_stub_->ListEvaluations(Context().get(), {}, &list));
  EXPECT_EQ(list.evaluations_size(), 0);
  request.mutable_requests(2)->mutable_evaluation()->set_priority(1);
  ASSERT_RPC_OK(evaluation_stub_->BatchCreateEvaluations(Context().get(), request, &response));
  ASSERT_EQ(response.evaluations_size(), 3);
  EXPECT_EQ(response.evaluations(2).priority(), 1);
  EXPECT_EQ(dispatcher_->Counters().queued, 3);
  for (size_t i = 3; i <= limits::kBatchMax; ++i) request.add_requests();
  EXPECT_EQ(ReasonOf(evaluation_stub_->BatchCreateEvaluations(Context().get(), request, &response)),
            "BATCH_SIZE_INVALID");
}

TEST_F(ServiceTest, ListsWithFilterAndPages) {
  CreateTwice();
  std::vector<std::string> names;
  for (int i = 0; i < 5; ++i) names.push_back(Create(InlineRequest()).name());
  v1::CancelEvaluationRequest cancel;
  cancel.set_name(names[2]);
  v1::Evaluation cancelled;
  ASSERT_RPC_OK(evaluation_stub_->CancelEvaluation(Context().get(), cancel, &cancelled));
  EXPECT_EQ(cancelled.state(), v1::CANCELLED);
  EXPECT_EQ(ReasonOf(evaluation_stub_->CancelEvaluation(Context().get(), cancel, &cancelled)),
            "EVALUATION_FINISHED");

  v1::ListEvaluationsRequest list;
  list.set_filter("problem = twice AND state = QUEUED");
  list.set_page_size(3);
  v1::ListEvaluationsResponse page;
  ASSERT_RPC_OK(evaluation_stub_->ListEvaluations(Context().get(), list, &page));
  ASSERT_EQ(page.evaluations_size(), 3);
  EXPECT_EQ(page.evaluations(0).name(), names[4]);
  EXPECT_EQ(page.evaluations(2).name(), names[1]);
  EXPECT_NE(page.evaluations(0).waiting_reason(), "");
  list.set_page_token(page.next_page_token());
  ASSERT_RPC_OK(evaluation_stub_->ListEvaluations(Context().get(), list, &page));
  ASSERT_EQ(page.evaluations_size(), 1);
  EXPECT_EQ(page.evaluations(0).name(), names[0]);
  EXPECT_EQ(page.next_page_token(), "");
  list.set_filter("state = QUEUED");
  EXPECT_EQ(ReasonOf(evaluation_stub_->ListEvaluations(Context().get(), list, &page)),
            "PAGE_TOKEN_INVALID");
  list.set_filter("state ~ QUEUED");
  list.clear_page_token();
  const grpc::Status bad = evaluation_stub_->ListEvaluations(Context().get(), list, &page);
  EXPECT_EQ(ReasonOf(bad), "FILTER_INVALID");
  EXPECT_THAT(bad.error_message(), HasSubstr("column 7"));
}

TEST_F(ServiceTest, WatchStreamsUntilTheEndAndResumes) {
  CreateTwice();
  const v1::Evaluation created = Create(InlineRequest());
  v1::WatchEvaluationRequest watch;
  watch.set_name(created.name());
  auto context = Context();
  auto reader = evaluation_stub_->WatchEvaluation(context.get(), watch);
  v1::WatchEvaluationResponse response;
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.evaluation().state(), v1::QUEUED);

  const std::string session = RegisterWorker("w1");
  const internal::v1::Lease lease = Acquire(session, "p1");
  ASSERT_EQ(lease.ref().evaluation(), created.name());
  EXPECT_EQ(lease.work().candidate().files_size(), 1);
  do {
    ASSERT_TRUE(reader->Read(&response));
  } while (response.evaluation().state() != v1::RUNNING);
  const int64_t running_revision = response.evaluation().revision();
  Renew(session, lease, "VERIFY");
  while (response.evaluation().stage() != "VERIFY") ASSERT_TRUE(reader->Read(&response));
  Complete(session, lease);
  do {
    ASSERT_TRUE(reader->Read(&response));
  } while (response.evaluation().state() != v1::SUCCEEDED);
  EXPECT_EQ(response.evaluation().outcome().verdict(), v1::PASSED);
  EXPECT_EQ(response.evaluation().outcome().workload_results(0).measurement().runners_size(), 0);
  const int64_t final_revision = response.evaluation().revision();
  EXPECT_FALSE(reader->Read(&response));
  ASSERT_RPC_OK(reader->Finish());

  // Resumed after the lease: only the end.
  watch.set_after_revision(running_revision);
  context = Context();
  reader = evaluation_stub_->WatchEvaluation(context.get(), watch);
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.evaluation().state(), v1::SUCCEEDED);
  EXPECT_FALSE(reader->Read(&response));
  ASSERT_RPC_OK(reader->Finish());
  // Resumed after the end: nothing.
  watch.set_after_revision(final_revision);
  context = Context();
  reader = evaluation_stub_->WatchEvaluation(context.get(), watch);
  EXPECT_FALSE(reader->Read(&response));
  ASSERT_RPC_OK(reader->Finish());
  while (watches_.size() != 0) std::this_thread::yield();

  v1::GetEvaluationRequest get;
  get.set_name(created.name());
  get.set_include_samples(true);
  v1::Evaluation got;
  ASSERT_RPC_OK(evaluation_stub_->GetEvaluation(Context().get(), get, &got));
  EXPECT_EQ(got.outcome().workload_results(0).measurement().runners_size(), 1);
  EXPECT_THAT(metrics_.Serialize(),
              HasSubstr("assay_evaluations_completed_total{verdict=\"PASSED\"} 1"));
}

TEST_F(ServiceTest, WatchersAreBoundedAndCancellationFreesThem) {
  CreateTwice();
  v1::WatchEvaluationRequest watch;
  watch.set_name(Create(InlineRequest()).name());
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::WatchEvaluationResponse>>> readers;
  v1::WatchEvaluationResponse response;
  for (size_t i = 0; i < kWatchersMax; ++i) {
    contexts.push_back(Context());
    readers.push_back(evaluation_stub_->WatchEvaluation(contexts.back().get(), watch));
    ASSERT_TRUE(readers.back()->Read(&response));
  }
  auto context = Context();
  auto reader = evaluation_stub_->WatchEvaluation(context.get(), watch);
  EXPECT_FALSE(reader->Read(&response));
  EXPECT_EQ(ReasonOf(reader->Finish()), "TOO_MANY_WATCHERS");
  contexts[0]->TryCancel();
  EXPECT_FALSE(readers[0]->Read(&response));
  EXPECT_EQ(readers[0]->Finish().error_code(), grpc::StatusCode::CANCELLED);
  while (watches_.size() >= kWatchersMax) std::this_thread::yield();
  context = Context();
  reader = evaluation_stub_->WatchEvaluation(context.get(), watch);
  EXPECT_TRUE(reader->Read(&response));
  // The server ends what is open when it shuts down.
  watches_.Shutdown();
  EXPECT_FALSE(reader->Read(&response));
  const grpc::Status ended = reader->Finish();
  EXPECT_EQ(ended.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(ReasonOf(ended), "SHUTTING_DOWN");
  for (size_t i = 1; i < kWatchersMax; ++i) {
    EXPECT_FALSE(readers[i]->Read(&response));
    EXPECT_EQ(readers[i]->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  }
}

TEST_F(ServiceTest, WatchRefusesWhatDoesNotExist) {
  const struct {
    std::string name;
    int64_t after;
    grpc::StatusCode code;
  } cases[] = {
      {"evaluations/none", 0, grpc::StatusCode::NOT_FOUND},
      {"nonsense", 0, grpc::StatusCode::INVALID_ARGUMENT},
      {"evaluations/none", -1, grpc::StatusCode::INVALID_ARGUMENT},
  };
  for (const auto& c : cases) {
    v1::WatchEvaluationRequest watch;
    watch.set_name(c.name);
    watch.set_after_revision(c.after);
    auto context = Context();
    auto reader = evaluation_stub_->WatchEvaluation(context.get(), watch);
    v1::WatchEvaluationResponse response;
    EXPECT_FALSE(reader->Read(&response));
    EXPECT_EQ(reader->Finish().error_code(), c.code) << c.name;
  }
  EXPECT_EQ(watches_.size(), 0u);
}

TEST_F(ServiceTest, AnIdenticalEvaluationIsAnsweredFromTheStore) {
  CreateTwice();
  v1::CreateEvaluationRequest request = InlineRequest();
  request.set_allow_stored_answer(true);
  const std::string session = RegisterWorker("w1");
  const v1::Evaluation first = Create(request);
  EXPECT_EQ(first.state(), v1::QUEUED);
  Complete(session, Acquire(session, "p1"));
  const v1::Evaluation second = Create(request);
  EXPECT_EQ(second.state(), v1::SUCCEEDED);
  EXPECT_EQ(second.answered_by(), first.name());
  EXPECT_EQ(second.outcome().verdict(), v1::PASSED);
  EXPECT_NE(second.name(), first.name());
  request.set_allow_stored_answer(false);
  EXPECT_EQ(Create(request).state(), v1::QUEUED);
  request.set_allow_stored_answer(true);
  request.mutable_evaluation()->set_level(v1::VERIFY);
  EXPECT_EQ(Create(request).state(), v1::QUEUED);
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

TEST_F(ServiceTest, LeaderboardNeedsAKnownProblem) {
  CreateTwice();
  v1::GetLeaderboardRequest request;
  v1::GetLeaderboardResponse response;
  request.set_problem("problems/twice");
  ASSERT_RPC_OK(leaderboard_stub_->GetLeaderboard(Context().get(), request, &response));
  EXPECT_EQ(response.entries_size(), 0);
  request.set_problem("problems/none");
  EXPECT_EQ(ReasonOf(leaderboard_stub_->GetLeaderboard(Context().get(), request, &response)),
            "PROBLEM_NOT_FOUND");
  request.clear_problem();
  EXPECT_EQ(ReasonOf(leaderboard_stub_->GetLeaderboard(Context().get(), request, &response)),
            "NAME_INVALID");
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
