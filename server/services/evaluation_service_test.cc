// EvaluationService over gRPC.
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/services/service_fixture.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

TEST_F(ServiceTest, CreationIsIdempotentByRequestId) {
  CreateTwice();
  const v1::Evaluation first = Create(InlineRequest("r1"));
  EXPECT_EQ(first.state(), v1::QUEUED);
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
  EXPECT_EQ(dispatcher_->Counters().unplaceable, 1);
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
  list.set_page_token(page.next_page_token());
  ASSERT_RPC_OK(evaluation_stub_->ListEvaluations(Context().get(), list, &page));
  ASSERT_EQ(page.evaluations_size(), 1);
  EXPECT_EQ(page.evaluations(0).name(), names[0]);
  EXPECT_EQ(page.next_page_token(), "");
  list.set_filter("state = QUEUED");
  EXPECT_EQ(ReasonOf(evaluation_stub_->ListEvaluations(Context().get(), list, &page)),
            "PAGE_TOKEN_INVALID");
  list.clear_page_token();
  list.set_filter("state = QUEUED AND problem = none");
  const grpc::Status unknown = evaluation_stub_->ListEvaluations(Context().get(), list, &page);
  EXPECT_EQ(unknown.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(ReasonOf(unknown), "PROBLEM_NOT_FOUND");
  EXPECT_THAT(unknown.error_message(), HasSubstr("'problems/none'"));
  list.set_filter("problem != none");
  ASSERT_RPC_OK(evaluation_stub_->ListEvaluations(Context().get(), list, &page));
  list.set_filter("state ~ QUEUED");
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

// It would wait for a change that never comes, or end without a word.
TEST_F(ServiceTest, WatchRefusesARevisionThatIsYetToCome) {
  CreateTwice();
  const v1::Evaluation created = Create(InlineRequest());
  for (const bool final : {false, true}) {
    v1::Evaluation now = created;
    if (final) {
      v1::CancelEvaluationRequest cancel;
      cancel.set_name(created.name());
      ASSERT_RPC_OK(evaluation_stub_->CancelEvaluation(Context().get(), cancel, &now));
    }
    v1::WatchEvaluationRequest watch;
    watch.set_name(created.name());
    watch.set_after_revision(now.revision() + 1);
    auto context = Context();
    auto reader = evaluation_stub_->WatchEvaluation(context.get(), watch);
    v1::WatchEvaluationResponse response;
    EXPECT_FALSE(reader->Read(&response));
    const grpc::Status status = reader->Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
    EXPECT_EQ(ReasonOf(status), "REVISION_INVALID");
  }
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

}  // namespace
}  // namespace assay
