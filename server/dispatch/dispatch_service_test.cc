// DispatchService over a real port, with the dispatcher's real threads.
#include "server/dispatch/dispatch_service.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "assay/internal/v1/dispatch.grpc.pb.h"
#include "assay/internal/v1/rpc_status.pb.h"
#include "base/test_matchers.h"
#include "gtest/gtest.h"
#include "server/dispatch/dispatcher.h"
#include "store/testing/builders.h"
#include "store/testing/fake_store.h"

namespace assay {
namespace {

namespace iv1 = internal::v1;

iv1::RegisterWorkerRequest Registration(const std::string& worker) {
  iv1::RegisterWorkerRequest request;
  request.set_worker(worker);
  request.set_lease_count_max(4);
  v1::Device* device = request.mutable_description()->add_devices();
  device->set_kind("cpu");
  device->set_device_class("cpu-test");
  return request;
}

iv1::AcquireLeaseRequest PollRequest(const std::string& session, const std::string& id,
                                     int wait_seconds = 20) {
  iv1::AcquireLeaseRequest request;
  request.set_session(session);
  request.set_poll_id(id);
  request.mutable_wait()->set_seconds(wait_seconds);
  return request;
}

class DispatchServiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(testing::CreateProblem(store_, testing::MakeProblem("gelu")));
    auto dispatcher = Dispatcher::Create({.clock = SystemClock(), .store = &store_});
    ASSERT_OK(dispatcher);
    dispatcher_ = *std::move(dispatcher);
    service_ = NewDispatchService(dispatcher_.get());
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    stub_ = iv1::DispatchService::NewStub(
        grpc::CreateChannel(absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials()));
  }
  void TearDown() override {
    server_->Shutdown(std::chrono::system_clock::now());  // cancels open polls
    server_->Wait();
    dispatcher_.reset();
  }
  v1::Evaluation Create(const std::string& id) {
    NewEvaluation input = testing::MakeEvaluation(id);
    input.evaluation.set_device_class("cpu");
    auto created = testing::CreateOne(store_, input);
    EXPECT_OK(created);
    return created->evaluation;
  }
  std::string Register() {
    grpc::ClientContext context;
    iv1::RegisterWorkerResponse response;
    const grpc::Status status = stub_->RegisterWorker(&context, Registration("w"), &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.session();
  }

  FakeStore store_;
  std::unique_ptr<Dispatcher> dispatcher_;
  std::unique_ptr<grpc::Service> service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<iv1::DispatchService::Stub> stub_;
};

TEST_F(DispatchServiceTest, LeaseToCompletion) {
  const std::string session = Register();
  iv1::AcquireLeaseResponse polled;
  grpc::Status status;
  grpc::ClientContext poll_context;
  std::thread poll(
      [&] { status = stub_->AcquireLease(&poll_context, PollRequest(session, "p"), &polled); });
  const v1::Evaluation created = Create("e1");
  dispatcher_->Enqueue({created});
  poll.join();
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_TRUE(polled.has_lease());

  iv1::CompleteLeaseRequest complete;
  complete.set_session(session);
  *complete.mutable_ref() = polled.lease().ref();
  complete.mutable_outcome()->set_verdict(v1::PASSED);
  for (const bool repeated : {false, true}) {
    grpc::ClientContext context;
    iv1::CompleteLeaseResponse response;
    status = stub_->CompleteLease(&context, complete, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.already_recorded(), repeated);
  }
  complete.mutable_ref()->set_fence(99);
  grpc::ClientContext context;
  iv1::CompleteLeaseResponse response;
  status = stub_->CompleteLease(&context, complete, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED);
  v1::ErrorDetail detail;
  iv1::RpcStatus details;
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  ASSERT_EQ(details.details_size(), 1);
  ASSERT_TRUE(details.details(0).UnpackTo(&detail));
  EXPECT_EQ(detail.reason(), "LEASE_FENCED");
  EXPECT_EQ(detail.code(), "ABORTED");
}

TEST_F(DispatchServiceTest, CancelledPollIsForgotten) {
  const std::string session = Register();
  grpc::ClientContext context;
  absl::Notification finished;
  grpc::Status status;
  iv1::AcquireLeaseResponse response;
  const iv1::AcquireLeaseRequest request = PollRequest(session, "p", 60);
  stub_->async()->AcquireLease(&context, &request, &response, [&](grpc::Status s) {
    status = std::move(s);
    finished.Notify();
  });
  context.TryCancel();
  finished.WaitForNotification();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
  // The worker's next poll gets the work, not the forgotten one; a lease that was on its way to the
  // latter comes back by itself.
  dispatcher_->Enqueue({Create("e1")});
  grpc::ClientContext next_context;
  iv1::AcquireLeaseResponse next;
  status = stub_->AcquireLease(&next_context, PollRequest(session, "q", 60), &next);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_TRUE(next.has_lease());
}

TEST_F(DispatchServiceTest, BlockedStorageDoesNotSlowOtherCalls) {
  const std::string session = Register();
  dispatcher_->Enqueue({Create("e1")});
  store_.BlockWrites();
  // More blocked calls than gRPC has threads.
  constexpr int kBlocked = 32;
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::deque<iv1::AcquireLeaseResponse> responses(kBlocked);
  std::deque<absl::Notification> finished(kBlocked);
  const iv1::AcquireLeaseRequest poll = PollRequest(session, "p", 60);
  for (int i = 0; i < kBlocked; ++i) {
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    stub_->async()->AcquireLease(
        contexts.back().get(), &poll, &responses[static_cast<size_t>(i)],
        [&finished, i](grpc::Status) { finished[static_cast<size_t>(i)].Notify(); });
  }
  store_.WaitForPending(1);  // the lease waits for the disk
  // A deadline, not a measurement: a handler that waited for the disk would miss it for ever.
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  iv1::RenewLeaseRequest renew;
  renew.set_session(session);
  iv1::RenewLeaseResponse renewed;
  EXPECT_EQ(stub_->RenewLease(&context, renew, &renewed).error_code(), grpc::StatusCode::ABORTED);
  store_.ReleaseWrites();
  for (auto& done : finished) done.WaitForNotification();
}

}  // namespace
}  // namespace assay
