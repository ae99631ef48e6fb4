// Errors as they come over the wire: the transport against a coordinator that only fails.
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "assay/internal/v1/dispatch.grpc.pb.h"
#include "assay/internal/v1/rpc_status.pb.h"
#include "base/status.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "worker/agent/session.h"
#include "worker/agent/transport.h"

namespace assay {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(60);

class FailingCoordinator : public internal::v1::DispatchService::Service {
 public:
  grpc::Status RegisterWorker(grpc::ServerContext*, const internal::v1::RegisterWorkerRequest*,
                              internal::v1::RegisterWorkerResponse*) override {
    return answer;
  }
  grpc::Status RenewLease(grpc::ServerContext*, const internal::v1::RenewLeaseRequest*,
                          internal::v1::RenewLeaseResponse*) override {
    return answer;
  }

  grpc::Status answer;
};

class GrpcTransportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&coordinator_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    transport_ = MakeGrpcTransport({.address = absl::StrCat("127.0.0.1:", port)});
  }

  absl::Status Register() {
    internal::v1::RegisterWorkerResponse response;
    return transport_->Register(internal::v1::RegisterWorkerRequest(), kTimeout, &response);
  }

  // ABORTED with these details, as google.rpc.Status holds them.
  static grpc::Status Aborted(const internal::v1::RpcStatus& details) {
    return grpc::Status(grpc::StatusCode::ABORTED, "no longer", details.SerializeAsString());
  }

  static void AddDetail(const std::string& reason, internal::v1::RpcStatus* details) {
    v1::ErrorDetail detail;
    detail.set_reason(reason);
    details->add_details()->PackFrom(detail);
  }

  FailingCoordinator coordinator_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<DispatchTransport> transport_;
};

TEST_F(GrpcTransportTest, TheReasonIsTakenOutOfTheDetails) {
  internal::v1::RpcStatus details;
  details.add_details()->set_type_url("type.googleapis.com/google.rpc.RetryInfo");
  AddDetail("", &details);
  AddDetail("SESSION_UNKNOWN", &details);
  AddDetail("LEASE_FENCED", &details);
  coordinator_.answer = Aborted(details);
  const absl::Status status = Register();
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(status.message(), "no longer");
  EXPECT_EQ(GetReason(status), "SESSION_UNKNOWN");
  // What the agent makes of it.
  EXPECT_EQ(ClassifyError(status), CallError::kSessionLost);
  internal::v1::RenewLeaseResponse response;
  EXPECT_EQ(GetReason(transport_->Renew(internal::v1::RenewLeaseRequest(), kTimeout, &response)),
            "SESSION_UNKNOWN");
}

TEST_F(GrpcTransportTest, WithoutDetailsCodeAndMessageStay) {
  for (const char* bytes : {"", "\377\377 not a message"}) {
    coordinator_.answer = grpc::Status(grpc::StatusCode::NOT_FOUND, "nobody", bytes);
    const absl::Status status = Register();
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(status.message(), "nobody");
    EXPECT_EQ(GetReason(status), "");
  }
  coordinator_.answer = grpc::Status::OK;
  EXPECT_OK(Register());
}

TEST_F(GrpcTransportTest, AServerThatIsGoneIsTransient) {
  server_->Shutdown();
  const absl::Status status = Register();
  EXPECT_EQ(ClassifyError(status), CallError::kTransient) << status;
}

}  // namespace
}  // namespace assay
