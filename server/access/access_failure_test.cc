// Tokens that end under an open stream, and acts that the log of access does not take.
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "server/access/access_fixture.h"
#include "store/records.h"
#include "store/sqlite/connection.h"

namespace assay {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

TEST_F(AccessTest, ExpiryEndsIdleStreams) {
  options_.clock = &clock_;
  Start();
  CreateProblem();
  Client admin(At(admin_secret_));
  v1::CreateTokenRequest request;
  request.mutable_token()->set_name("brief");
  request.mutable_token()->add_scopes(v1::Token::SUBMIT);
  *request.mutable_token()->mutable_expire_time() = ToTimestamp(clock_.Now() + absl::Minutes(1));
  v1::CreateTokenResponse created;
  ASSERT_OK(FromGrpc(admin.access->CreateToken(Context().get(), request, &created)));
  Client client(At(created.secret()));
  ASSERT_OK_AND_ASSIGN(const v1::Evaluation evaluation, client.Submit());
  v1::WatchEvaluationRequest watch;
  watch.set_name(evaluation.name());
  auto context = Context();
  const auto reader = client.evaluations->WatchEvaluation(context.get(), watch);
  auto other_context = Context();
  const auto other = admin.evaluations->WatchEvaluation(other_context.get(), watch);
  v1::WatchEvaluationResponse response;
  ASSERT_TRUE(reader->Read(&response));
  ASSERT_TRUE(other->Read(&response));
  clock_.Advance(absl::Minutes(1));
  EXPECT_FALSE(reader->Read(&response)) << "it has nothing to send, and ends all the same";
  EXPECT_THAT(FromGrpc(reader->Finish()), HasReason("TOKEN_EXPIRED"));
  // A token that does not expire keeps its own, to the end.
  ASSERT_OK(admin.Cancel(evaluation.name()));
  do {  // after a minute it is told why it waits
    ASSERT_TRUE(other->Read(&response));
  } while (response.evaluation().state() == v1::QUEUED);
  EXPECT_EQ(response.evaluation().state(), v1::CANCELLED);
  EXPECT_FALSE(other->Read(&response));
  EXPECT_OK(FromGrpc(other->Finish()));
}

// A log that takes no more events, as on a full disk.
class UnwritableLog {
 public:
  explicit UnwritableLog(const std::string& data_directory) {
    auto opened = Connection::Open(data_directory + "/assay.db", Connection::Role::kWriter);
    EXPECT_OK(opened);
    connection_ = *std::move(opened);
    EXPECT_OK(
        connection_->Execute("CREATE TRIGGER full BEFORE INSERT ON access_events"
                             " BEGIN SELECT RAISE(ABORT, 'no room'); END"));
  }
  ~UnwritableLog() { EXPECT_OK(connection_->Execute("DROP TRIGGER full")); }

 private:
  std::unique_ptr<Connection> connection_;
};

TEST_F(AccessTest, WhatCannotBeRecordedIsAnsweredWithAnError) {
  Start();
  CreateProblem();
  ASSERT_OK_AND_ASSIGN(const std::string submit, CreateToken("s", v1::Token::SUBMIT));
  ASSERT_OK_AND_ASSIGN(const std::string work, CreateToken("w", v1::Token::WORK));
  ASSERT_OK(Client(At(work)).Register("w1"));
  ASSERT_OK_AND_ASSIGN(const v1::Evaluation evaluation, Client(At(submit)).Submit());
  Client admin(At(admin_secret_));
  {
    UnwritableLog unwritable(options_.data_directory);
    for (const absl::Status& status :
         {admin.Drain("workers/w1"), admin.Cancel(evaluation.name()), Revoke("s")}) {
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal, HasSubstr("may have been done")));
      EXPECT_THAT(status, HasReason("ACCESS_UNRECORDED"));
    }
    // What was refused stays refused, and is told as such.
    EXPECT_THAT(admin.Drain("workers/none"), HasReason("WORKER_NOT_FOUND"));
    EXPECT_THAT(Client(At(submit)).ListProblems(), HasReason("TOKEN_REVOKED"));
    // A token is not made without its record: its name stays free.
    EXPECT_THAT(CreateToken("late", v1::Token::READ), StatusIs(absl::StatusCode::kInternal));
    EXPECT_THAT(CreateToken("w", v1::Token::READ), HasReason("TOKEN_EXISTS"));
    // Calls that are not recorded go on.
    EXPECT_OK(admin.ListProblems());
  }
  ASSERT_OK_AND_ASSIGN(const std::string late, CreateToken("late", v1::Token::READ));
  EXPECT_OK(Client(At(late)).ListProblems());
  EXPECT_THAT(Log(), Contains("CreateToken tokens/root late OK"));
  v1::ListWorkersResponse workers;
  ASSERT_OK(FromGrpc(admin.fleet->ListWorkers(Context().get(), {}, &workers)));
  EXPECT_EQ(workers.workers(0).state(), v1::Worker::DRAINING);
}

}  // namespace
}  // namespace assay
