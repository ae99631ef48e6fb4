// A real server on a real port whose calls need tokens, and its clients, for tests.
#ifndef ASSAY_SERVER_ACCESS_ACCESS_FIXTURE_H_
#define ASSAY_SERVER_ACCESS_ACCESS_FIXTURE_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "assay/internal/v1/dispatch.grpc.pb.h"
#include "assay/internal/v1/rpc_status.pb.h"
#include "assay/v1/access.grpc.pb.h"
#include "assay/v1/evaluation.grpc.pb.h"
#include "assay/v1/fleet.grpc.pb.h"
#include "assay/v1/problem.grpc.pb.h"
#include "base/channel.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/test_matchers.h"
#include "gtest/gtest.h"
#include "server/access/access_service.h"
#include "server/server.h"
#include "server/services/test_problem.h"
#include "store/sqlite/sqlite_store.h"

namespace assay {

// With the server's reason.
inline absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  internal::v1::RpcStatus details;
  v1::ErrorDetail detail;
  if (details.ParseFromString(status.error_details()) && details.details_size() == 1) {
    details.details(0).UnpackTo(&detail);
  }
  return ErrorWithReason(static_cast<absl::StatusCode>(status.error_code()), detail.reason(),
                         status.error_message());
}

inline std::unique_ptr<grpc::ClientContext> Context() {
  auto context = std::make_unique<grpc::ClientContext>();
  // Far beyond any honest answer, so that a hang fails instead of hanging.
  context->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  return context;
}

// What one client has.
struct Client {
  explicit Client(const Endpoint& endpoint)
      : channel(MakeChannel(endpoint, {})),
        access(v1::AccessService::NewStub(channel)),
        evaluations(v1::EvaluationService::NewStub(channel)),
        fleet(v1::FleetService::NewStub(channel)),
        problems(v1::ProblemService::NewStub(channel)),
        dispatch(internal::v1::DispatchService::NewStub(channel)) {}

  absl::Status ListProblems() {
    v1::ListProblemsResponse response;
    return FromGrpc(problems->ListProblems(Context().get(), {}, &response));
  }
  absl::StatusOr<v1::Evaluation> Submit(const std::string& request_id = "") {
    v1::CreateEvaluationRequest request;
    *request.mutable_candidate() = TwiceCandidate();
    request.set_request_id(request_id);
    // Output only: who asks is not for the client to say.
    request.mutable_evaluation()->set_creator("tokens/somebody-else");
    v1::Evaluation evaluation;
    const absl::Status status =
        FromGrpc(evaluations->CreateEvaluation(Context().get(), request, &evaluation));
    if (!status.ok()) return status;
    return evaluation;
  }
  absl::Status Cancel(const std::string& name) {
    v1::CancelEvaluationRequest request;
    request.set_name(name);
    v1::Evaluation evaluation;
    return FromGrpc(evaluations->CancelEvaluation(Context().get(), request, &evaluation));
  }
  absl::Status Drain(const std::string& name) {
    v1::DrainWorkerRequest request;
    request.set_name(name);
    v1::Worker worker;
    return FromGrpc(fleet->DrainWorker(Context().get(), request, &worker));
  }
  absl::Status Register(const std::string& name) {
    internal::v1::RegisterWorkerRequest request;
    request.set_worker(name);
    request.set_lease_count_max(1);
    request.mutable_description()->set_name("workers/" + name);
    v1::Device* device = request.mutable_description()->add_devices();
    device->set_name("workers/" + name + "/devices/0");
    device->set_kind("cpu");
    device->set_device_class("cpu-test");
    internal::v1::RegisterWorkerResponse response;
    return FromGrpc(dispatch->RegisterWorker(Context().get(), request, &response));
  }

  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::AccessService::Stub> access;
  std::unique_ptr<v1::EvaluationService::Stub> evaluations;
  std::unique_ptr<v1::FleetService::Stub> fleet;
  std::unique_ptr<v1::ProblemService::Stub> problems;
  std::unique_ptr<internal::v1::DispatchService::Stub> dispatch;
};

class AccessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.data_directory = folder_.path() + "/data";
    options_.listen = "127.0.0.1:0";
    options_.require_tokens = true;
    auto store = OpenSqliteStore({.directory = options_.data_directory});
    ASSERT_OK(store);
    auto secret = CreateAdminToken("root", SystemClock(), store->get());
    ASSERT_OK(secret);
    admin_secret_ = *secret;
  }

  void Start() {
    server_.reset();
    auto server = AssayServer::Start(options_);
    ASSERT_OK(server);
    server_ = *std::move(server);
  }

  Endpoint At(const std::string& secret = "") const {
    return {.address = server_->address(), .token = secret};
  }

  void CreateProblem() {
    v1::CreateProblemRequest request;
    *request.mutable_problem() = TwiceProblem();
    v1::Problem problem;
    ASSERT_OK(FromGrpc(
        Client(At(admin_secret_)).problems->CreateProblem(Context().get(), request, &problem)));
  }

  // The secret of a new token.
  absl::StatusOr<std::string> CreateToken(const std::string& id, v1::Token::Scope scope,
                                          int unfinished_max = 0) {
    v1::CreateTokenRequest request;
    request.mutable_token()->set_name(id);
    request.mutable_token()->add_scopes(scope);
    request.mutable_token()->set_unfinished_evaluations_max(unfinished_max);
    v1::CreateTokenResponse response;
    const absl::Status status = FromGrpc(
        Client(At(admin_secret_)).access->CreateToken(Context().get(), request, &response));
    if (!status.ok()) return status;
    EXPECT_EQ(response.token().name(), "tokens/" + id);
    return response.secret();
  }

  absl::Status Revoke(const std::string& id) {
    v1::RevokeTokenRequest request;
    request.set_name("tokens/" + id);
    v1::Token token;
    return FromGrpc(
        Client(At(admin_secret_)).access->RevokeToken(Context().get(), request, &token));
  }

  // "Method token resource code", oldest first.
  std::vector<std::string> Log() {
    v1::ListAccessEventsResponse response;
    EXPECT_OK(FromGrpc(
        Client(At(admin_secret_)).access->ListAccessEvents(Context().get(), {}, &response)));
    std::vector<std::string> lines;
    for (const v1::AccessEvent& event : response.events()) {
      lines.insert(lines.begin(),
                   absl::StrCat(event.method().substr(event.method().rfind('/') + 1), " ",
                                event.token(), " ", event.resource(), " ", event.code()));
    }
    return lines;
  }

  FakeClock clock_;  // the server's where a test says so
  TemporaryDirectory folder_ = *TemporaryDirectory::Create("access");
  ServerOptions options_;
  std::string admin_secret_;
  std::unique_ptr<AssayServer> server_;
};

}  // namespace assay

#endif  // ASSAY_SERVER_ACCESS_ACCESS_FIXTURE_H_
