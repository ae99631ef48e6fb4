#include "client/cli/rpc.h"

#include <string>

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
  const absl::Status status = Connection("127.0.0.1:1")
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
  const Connection connection("127.0.0.1:1");
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

}  // namespace
}  // namespace assay
