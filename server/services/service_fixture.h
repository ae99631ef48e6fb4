// The public API over a real gRPC port, on a store in memory and the real dispatcher, for tests.
#ifndef ASSAY_SERVER_SERVICES_SERVICE_FIXTURE_H_
#define ASSAY_SERVER_SERVICES_SERVICE_FIXTURE_H_

#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/impl/service_type.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "assay/internal/v1/dispatch.grpc.pb.h"
#include "assay/internal/v1/rpc_status.pb.h"
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

inline std::string ReasonOf(const grpc::Status& status) {
  internal::v1::RpcStatus details;
  v1::ErrorDetail detail;
  const bool parsed = details.ParseFromString(status.error_details()) &&
                      details.details_size() == 1 && details.details(0).UnpackTo(&detail);
  return parsed ? detail.reason() : "";
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
    context.replies = &replies_;
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
    replies_.Shutdown();
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

  // From now on its results rank.
  void AdmitTwice() {
    v1::GetProblemRequest get;
    get.set_name("problems/twice");
    v1::Problem problem;
    ASSERT_RPC_OK(problem_stub_->GetProblem(Context().get(), get, &problem));
    v1::RecordProblemAuditRequest request;
    request.mutable_audit()->set_problem(problem.name());
    request.mutable_audit()->set_problem_version(problem.version());
    request.mutable_audit()->set_problem_digest(problem.digest());
    request.mutable_audit()->set_passed(true);
    ASSERT_RPC_OK(problem_stub_->RecordProblemAudit(Context().get(), request, &problem));
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
  Executor replies_{1, 1000};
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

}  // namespace assay

#endif  // ASSAY_SERVER_SERVICES_SERVICE_FIXTURE_H_
