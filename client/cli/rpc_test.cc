#include "client/cli/rpc.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "assay/internal/v1/rpc_status.pb.h"
#include "base/test_matchers.h"
#include "gtest/gtest.h"

namespace assay {
namespace {

std::string Details(const google::protobuf::Message& detail) {
  internal::v1::RpcStatus details;
  details.set_code(9);
  details.set_message("it is final");
  details.add_details()->PackFrom(detail);
  return details.SerializeAsString();
}

TEST(ToStatusTest, TheReasonComesThrough) {
  v1::ErrorDetail detail;
  detail.set_reason("EVALUATION_FINISHED");
  const absl::Status status = Connection({.address = "127.0.0.1:1"})
                                  .ToStatus(grpc::Status(grpc::StatusCode::FAILED_PRECONDITION,
                                                         "it is final", Details(detail)));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(status, HasReason("EVALUATION_FINISHED"));
  EXPECT_EQ(status.message(), "it is final");
}

TEST(ToStatusTest, WithoutAReasonOfTheServer) {
  v1::ErrorDetail empty;
  v1::Problem foreign;
  foreign.set_name("problems/x");
  const Connection connection({.address = "127.0.0.1:1"});
  const std::string cases[] = {"", "\xff\xff", Details(empty), Details(foreign)};
  for (const std::string& details : cases) {
    const absl::Status status =
        connection.ToStatus(grpc::Status(grpc::StatusCode::INTERNAL, "broken", details));
    EXPECT_EQ(status, absl::InternalError("broken"));
    EXPECT_THAT(
        connection.ToStatus(grpc::Status(grpc::StatusCode::UNAVAILABLE, "refused", details)),
        HasReason("SERVER_UNREACHABLE"));
  }
  EXPECT_OK(connection.ToStatus(grpc::Status::OK));
}

// Loses its first answer, as a connection does that breaks after the evaluation was stored.
class ForgetfulService final : public v1::EvaluationService::Service {
 public:
  grpc::Status CreateEvaluation(grpc::ServerContext*, const v1::CreateEvaluationRequest* request,
                                v1::Evaluation* response) override {
    request_ids.push_back(request->request_id());
    if (request_ids.size() == 1) return {grpc::StatusCode::UNAVAILABLE, "connection lost"};
    response->set_name("evaluations/e1");
    return grpc::Status::OK;
  }
  std::vector<std::string> request_ids;
};

TEST(CreateTest, ARepetitionCannotCreateTwice) {
  ForgetfulService service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  Connection connection({.address = absl::StrCat("127.0.0.1:", port)});
  ASSERT_OK_AND_ASSIGN(const v1::Evaluation first, connection.Create({}));
  EXPECT_EQ(first.name(), "evaluations/e1");
  ASSERT_EQ(service.request_ids.size(), 2u);
  EXPECT_FALSE(service.request_ids[0].empty());
  EXPECT_EQ(service.request_ids[0], service.request_ids[1]);

  // Another submission has another id; one that the user chose stays.
  EXPECT_OK(connection.Create({}));
  EXPECT_NE(service.request_ids[2], service.request_ids[0]);
  v1::CreateEvaluationRequest mine;
  mine.set_request_id("mine");
  EXPECT_OK(connection.Create(mine));
  EXPECT_EQ(service.request_ids[3], "mine");
  server->Shutdown();
}

}  // namespace
}  // namespace assay
