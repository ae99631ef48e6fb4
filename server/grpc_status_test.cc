#include "server/grpc_status.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <string>

#include "absl/strings/str_cat.h"
#include "assay/internal/v1/rpc_status.pb.h"
#include "assay/v1/fleet.grpc.pb.h"
#include "base/status.h"
#include "gtest/gtest.h"

namespace assay {
namespace {

absl::Status Refusal(std::string_view message) {
  return ErrorWithReason(absl::StatusCode::kInvalidArgument, "FILTER_INVALID", message);
}

TEST(GrpcStatusTest, OkHasNoDetails) {
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
  EXPECT_EQ(ToGrpcStatus(absl::OkStatus()).error_details(), "");
}

TEST(GrpcStatusTest, DetailsAreAStatusOfGoogleRpc) {
  const grpc::Status status = ToGrpcStatus(Refusal("column 3"));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "column 3");
  internal::v1::RpcStatus details;
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  EXPECT_EQ(details.code(), 3);
  EXPECT_EQ(details.message(), "column 3");
  ASSERT_EQ(details.details_size(), 1);
  EXPECT_EQ(details.details(0).type_url(), "type.googleapis.com/assay.v1.ErrorDetail");
  v1::ErrorDetail detail;
  ASSERT_TRUE(details.details(0).UnpackTo(&detail));
  EXPECT_EQ(detail.code(), "INVALID_ARGUMENT");
  EXPECT_EQ(detail.reason(), "FILTER_INVALID");
  EXPECT_EQ(detail.message(), "column 3");
}

// Byte by byte: RpcStatus must not drift from google.rpc.Status {int32 code = 1; string message =
// 2; repeated google.protobuf.Any details = 3}, nor Any from {string type_url = 1; bytes value =
// 2}.
TEST(GrpcStatusTest, BytesOnTheWire) {
  const auto field = [](char tag, const std::string& value) {
    return std::string{tag, static_cast<char>(value.size())} + value;
  };
  const std::string detail =
      field('\x0a', "NOT_FOUND") + field('\x12', "X_NOT_FOUND") + field('\x1a', "no x");
  const std::string any =
      field('\x0a', "type.googleapis.com/assay.v1.ErrorDetail") + field('\x12', detail);
  const absl::Status status = ErrorWithReason(absl::StatusCode::kNotFound, "X_NOT_FOUND", "no x");
  EXPECT_EQ(ToGrpcStatus(status).error_details(),
            std::string("\x08\x05") + field('\x12', "no x") + field('\x1a', any));
}

TEST(GrpcStatusTest, EscapesWhatIsNoPrintableAscii) {
  const struct {
    std::string message;
    std::string shown;
  } cases[] = {
      {"", ""},
      {"two\nlines of 100%", "two\nlines of 100%"},
      {std::string("nul\0", 4), "nul\\x00"},
      {"\xc3\xa4", "\\xc3\\xa4"},
      {"\xff\x1b[31m", "\\xff\\x1b[31m"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(ToGrpcStatus(Refusal(c.message)).error_message(), c.shown);
  }
}

// Fails every call with a message that its client chose.
class Refuser final : public v1::FleetService::Service {
 public:
  std::string message;
  grpc::Status ListWorkers(grpc::ServerContext*, const v1::ListWorkersRequest*,
                           v1::ListWorkersResponse*) override {
    return ToGrpcStatus(Refusal(message));
  }
};

TEST(GrpcStatusTest, LongMessagesFitIntoTheTrailingMetadata) {
  Refuser service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  const auto stub = v1::FleetService::NewStub(
      grpc::CreateChannel(absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials()));
  for (const char* letter : {"a", "\n", "%", "\xc3\xa4", "\xff"}) {
    service.message.clear();
    while (service.message.size() < 100'000) service.message += letter;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    v1::ListWorkersResponse response;
    const grpc::Status status = stub->ListWorkers(&context, {}, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
    internal::v1::RpcStatus details;
    EXPECT_TRUE(details.ParseFromString(status.error_details()));
    EXPECT_EQ(details.details_size(), 1);
    EXPECT_GT(status.error_message().size(), 1000u);
    EXPECT_TRUE(status.error_message().ends_with("..."));
  }
}

}  // namespace
}  // namespace assay
