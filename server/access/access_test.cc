// Access as a whole: a real server on a real port, with tokens and with TLS.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/access/access_fixture.h"
#include "server/access/rules.h"
#include "server/access/test_certificates.h"
#include "server/services/test_problem.h"
#include "store/sqlite/sqlite_store.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::Status CallBare(const std::shared_ptr<grpc::Channel>& channel, const std::string& path) {
  grpc::GenericStub stub(channel);
  const grpc::Slice empty;
  const grpc::ByteBuffer request(&empty, 1);
  grpc::ByteBuffer response;
  auto context = Context();
  absl::Status status;
  absl::Notification done;
  stub.UnaryCall(context.get(), path, {}, &request, &response, [&](grpc::Status result) {
    status = FromGrpc(result);
    done.Notify();
  });
  done.WaitForNotification();
  return status;
}

// rules_test holds the table against the services that exist.
TEST_F(AccessTest, NoMethodAnswersWithoutAToken) {
  Start();
  const auto channel = MakeChannel(At(), {});
  for (const AccessRule& rule : AccessRules()) {
    const absl::Status status =
        CallBare(channel, absl::StrCat("/", rule.service, "/", rule.method));
    if (absl::IsUnimplemented(status)) continue;  // does nothing
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnauthenticated)) << rule.method;
    EXPECT_THAT(status, HasReason("TOKEN_MISSING")) << rule.method;
  }
  EXPECT_OK(CallBare(channel, "/grpc.health.v1.Health/Check"));
}

TEST_F(AccessTest, ARefusedCallDoesNothing) {
  Start();
  CreateProblem();
  ASSERT_OK_AND_ASSIGN(const std::string work, CreateToken("w", v1::Token::WORK));
  ASSERT_OK_AND_ASSIGN(const std::string submit, CreateToken("s", v1::Token::SUBMIT));
  ASSERT_OK_AND_ASSIGN(const std::string read, CreateToken("r", v1::Token::READ));
  ASSERT_OK(Client(At(work)).Register("w1"));
  ASSERT_OK_AND_ASSIGN(const v1::Evaluation evaluation, Client(At(submit)).Submit());
  for (const std::string& secret : {std::string(), std::string("wrong"), read}) {
    Client client(At(secret));
    EXPECT_FALSE(client.Drain("workers/w1").ok());
    EXPECT_FALSE(client.Cancel(evaluation.name()).ok());
    EXPECT_FALSE(client.Submit().ok());
    EXPECT_FALSE(client.Register("w1").ok());
    EXPECT_FALSE(client.Register("w2").ok());
  }
  Client admin(At(admin_secret_));
  v1::ListWorkersResponse workers;
  ASSERT_OK(FromGrpc(admin.fleet->ListWorkers(Context().get(), {}, &workers)));
  ASSERT_EQ(workers.workers_size(), 1);
  EXPECT_EQ(workers.workers(0).state(), v1::Worker::ACTIVE);
  v1::ListEvaluationsResponse listed;
  ASSERT_OK(FromGrpc(admin.evaluations->ListEvaluations(Context().get(), {}, &listed)));
  ASSERT_EQ(listed.evaluations_size(), 1);
  EXPECT_EQ(listed.evaluations(0).state(), v1::QUEUED);
}

TEST_F(AccessTest, AnEvaluationBelongsToTheTokenThatCreatedIt) {
  Start();
  CreateProblem();
  ASSERT_OK_AND_ASSIGN(const std::string mine, CreateToken("mine", v1::Token::SUBMIT));
  ASSERT_OK_AND_ASSIGN(const std::string theirs, CreateToken("theirs", v1::Token::SUBMIT));
  ASSERT_OK_AND_ASSIGN(const v1::Evaluation first, Client(At(mine)).Submit());
  EXPECT_EQ(first.creator(), "tokens/mine");
  ASSERT_OK_AND_ASSIGN(const v1::Evaluation second, Client(At(mine)).Submit());
  EXPECT_THAT(Client(At(theirs)).Cancel(first.name()), HasReason("SCOPE_MISSING"));
  EXPECT_OK(Client(At(mine)).Cancel(first.name()));
  EXPECT_OK(Client(At(admin_secret_)).Cancel(second.name()));
  EXPECT_THAT(Log(),
              ElementsAre("assay-server --create-admin-token  tokens/root OK",
                          "CreateProblem tokens/root problems/twice OK",
                          "CreateToken tokens/root mine OK", "CreateToken tokens/root theirs OK",
                          "CancelEvaluation tokens/theirs " + first.name() + " PERMISSION_DENIED",
                          "CancelEvaluation tokens/root " + second.name() + " OK"));
  // The log survives, and so do the tokens.
  Start();
  EXPECT_EQ(Log().size(), 7u);  // and the first listing
  EXPECT_OK(Client(At(mine)).ListProblems());
}

TEST_F(AccessTest, RevocationEndsCallsAndOpenStreamsAtOnce) {
  Start();
  CreateProblem();
  ASSERT_OK_AND_ASSIGN(const std::string secret, CreateToken("brief", v1::Token::SUBMIT));
  Client client(At(secret));
  ASSERT_OK_AND_ASSIGN(const v1::Evaluation evaluation, client.Submit());
  v1::WatchEvaluationRequest watch;
  watch.set_name(evaluation.name());
  auto context = Context();
  const auto reader = client.evaluations->WatchEvaluation(context.get(), watch);
  v1::WatchEvaluationResponse response;
  ASSERT_TRUE(reader->Read(&response));
  ASSERT_OK(Revoke("brief"));
  EXPECT_THAT(client.ListProblems(), HasReason("TOKEN_REVOKED"));
  EXPECT_FALSE(reader->Read(&response)) << "it has nothing to send, and ends all the same";
  EXPECT_THAT(FromGrpc(reader->Finish()), HasReason("TOKEN_REVOKED"));
  EXPECT_THAT(Revoke("none"), HasReason("TOKEN_NOT_FOUND"));
  EXPECT_THAT(CreateToken("brief", v1::Token::READ), HasReason("TOKEN_EXISTS"));
}

// Or a submitter would keep a first place by cancelling what proves it.
TEST_F(AccessTest, ASecondRunIsTheServersToCancel) {
  Start();
  CreateProblem();
  ASSERT_OK_AND_ASSIGN(const std::string secret, CreateToken("own", v1::Token::SUBMIT));
  ASSERT_OK_AND_ASSIGN(const v1::Evaluation first, Client(At(secret)).Submit());
  server_.reset();
  {
    ASSERT_OK_AND_ASSIGN(const auto store, OpenSqliteStore({.directory = options_.data_directory}));
    NewEvaluation second;
    ASSERT_OK_AND_ASSIGN(second.evaluation, store->GetEvaluation(first.name(), false));
    second.evaluation.set_name("evaluations/second");
    second.evaluation.set_confirms(first.name());
    absl::Notification stored;
    store->CreateEvaluations({second}, [&](auto created) {
      EXPECT_OK(created.status());
      stored.Notify();
    });
    stored.WaitForNotification();
  }
  Start();
  EXPECT_THAT(Client(At(secret)).Cancel("evaluations/second"), HasReason("SCOPE_MISSING"));
  EXPECT_OK(Client(At(secret)).Cancel(first.name()));
  EXPECT_OK(Client(At(admin_secret_)).Cancel("evaluations/second"));
}

TEST_F(AccessTest, AQuotaCountsWhatIsUnfinished) {
  Start();
  CreateProblem();
  ASSERT_OK_AND_ASSIGN(const std::string secret, CreateToken("small", v1::Token::SUBMIT, 1));
  Client client(At(secret));
  ASSERT_OK_AND_ASSIGN(const v1::Evaluation first, client.Submit("once"));
  EXPECT_THAT(client.Submit("twice"), HasReason("QUOTA_EXCEEDED"));
  ASSERT_OK(client.Cancel(first.name()));
  // A repetition answers with what exists and takes no place.
  ASSERT_OK_AND_ASSIGN(const v1::Evaluation again, client.Submit("once"));
  EXPECT_EQ(again.name(), first.name());
  // Nor does what the store refuses.
  ASSERT_OK_AND_ASSIGN(const v1::Evaluation second, client.Submit("twice"));
  ASSERT_OK(client.Cancel(second.name()));
  for (int i = 0; i < 3; ++i) {
    v1::CreateEvaluationRequest changed;
    *changed.mutable_candidate() = TwiceCandidate("twice", "// other\n");
    changed.set_request_id("once");
    v1::Evaluation evaluation;
    EXPECT_THAT(
        FromGrpc(client.evaluations->CreateEvaluation(Context().get(), changed, &evaluation)),
        HasReason("REQUEST_ID_REUSED"));
  }
  EXPECT_OK(client.Submit("third"));
  // What waits is counted after a restart too.
  Start();
  EXPECT_THAT(Client(At(secret)).Submit("fourth"), HasReason("QUOTA_EXCEEDED"));
}

TEST_F(AccessTest, TokenRequestsAreChecked) {
  Start();
  Client admin(At(admin_secret_));
  const auto create = [&](const v1::Token& token) {
    v1::CreateTokenRequest request;
    *request.mutable_token() = token;
    v1::CreateTokenResponse response;
    return FromGrpc(admin.access->CreateToken(Context().get(), request, &response));
  };
  v1::Token token;
  token.set_name("tokens/t");
  EXPECT_THAT(create(token), HasReason("TOKEN_REQUEST_INVALID"));
  token.add_scopes(v1::Token::READ);
  for (const char* name : {"", "tokens/", "T", "a b", "tokens/a/b", "../x", "a\x1b[2J"}) {
    token.set_name(name);
    EXPECT_THAT(create(token), HasReason("NAME_INVALID")) << name;
  }
  for (const size_t bytes : {size_t{limits::kNameBytesMax} + 1, size_t{1} << 20, size_t{8} << 20}) {
    token.set_name(std::string(bytes, 'a'));
    EXPECT_THAT(create(token), HasReason("NAME_INVALID")) << bytes;
    token.set_name("tokens/" + std::string(bytes, '\xff'));
    EXPECT_FALSE(create(token).ok()) << bytes;
  }
  // Larger than a message may be.
  token.set_name(std::string(size_t{17} << 20, 'a'));
  EXPECT_THAT(create(token), StatusIs(absl::StatusCode::kResourceExhausted));
  token.set_name(std::string(limits::kNameBytesMax, 'a'));
  EXPECT_OK(create(token));
  token.set_name("t");
  // Scopes of another release; protobuf keeps numbers that it has no name for.
  for (const int scope : {0, 5, 1000, -1, std::numeric_limits<int>::max()}) {
    v1::Token unknown = token;
    unknown.add_scopes(static_cast<v1::Token::Scope>(scope));
    EXPECT_THAT(create(unknown), HasReason("TOKEN_REQUEST_INVALID")) << scope;
  }
  const std::pair<int64_t, int32_t> times[] = {
      {1, 0}, {253'402'300'800, 0}, {9'000'000'000, 1'000'000'000}, {9'000'000'000, -1}};
  for (const auto& [seconds, nanos] : times) {
    token.mutable_expire_time()->set_seconds(seconds);
    token.mutable_expire_time()->set_nanos(nanos);
    EXPECT_THAT(create(token), HasReason("TOKEN_REQUEST_INVALID")) << seconds << " " << nanos;
  }
  token.clear_expire_time();
  token.set_requests_per_second(-1);
  EXPECT_THAT(create(token), HasReason("TOKEN_REQUEST_INVALID"));
  token.set_requests_per_second(5);
  EXPECT_OK(create(token));
  for (int i = 0; i < 5; ++i) ASSERT_OK(CreateToken(absl::StrCat("t", i), v1::Token::READ));
  std::set<std::string> names;
  v1::ListTokensRequest request;
  request.set_page_size(3);
  do {
    v1::ListTokensResponse response;
    ASSERT_OK(FromGrpc(admin.access->ListTokens(Context().get(), request, &response)));
    EXPECT_LE(response.tokens_size(), 3);
    for (const v1::Token& each : response.tokens()) names.insert(each.name());
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_EQ(names.size(), 8u);
  // The log holds the beginning of a huge name.
  for (const std::string& line : Log()) EXPECT_LE(line.size(), 2 * limits::kAccessTextBytesMax);
}

// --- TLS.

class TlsTest : public AccessTest {
 protected:
  void SetUp() override {
    AccessTest::SetUp();
    options_.tls_cert_path = Write("server.pem", server_certificate_.pem);
    options_.tls_key_path = Write("server.key", server_certificate_.key_pem);
  }

  std::string Write(const std::string& name, const std::string& content) {
    const std::string path = folder_.path() + "/" + name;
    EXPECT_OK(WriteFileAtomically(path, content));
    return path;
  }

  Endpoint Secure(const std::string& secret = "", const TestCertificate* own = nullptr) const {
    Endpoint endpoint = At(secret);
    endpoint.ca_pem = authority_.pem;
    if (own != nullptr) {
      endpoint.certificate_pem = own->pem;
      endpoint.key_pem = own->key_pem;
    }
    return endpoint;
  }

  const TestCertificate authority_ = MakeTestCertificate("authority", nullptr);
  const TestCertificate server_certificate_ = MakeTestCertificate("server", &authority_);
};

TEST_F(TlsTest, TokensGoOverTls) {
  Start();
  EXPECT_OK(Client(Secure(admin_secret_)).ListProblems());
  EXPECT_THAT(Client(Secure()).ListProblems(), HasReason("TOKEN_MISSING"));
  EXPECT_THAT(Client(At(admin_secret_)).ListProblems(), StatusIs(absl::StatusCode::kUnavailable));
  Endpoint other = Secure(admin_secret_);
  other.ca_pem = MakeTestCertificate("other authority", nullptr).pem;
  EXPECT_THAT(Client(other).ListProblems(), StatusIs(absl::StatusCode::kUnavailable));
}

TEST_F(TlsTest, WorkersShowCertificatesOfTheirAuthority) {
  const TestCertificate workers = MakeTestCertificate("workers", nullptr);
  const TestCertificate good = MakeTestCertificate("w1", &workers);
  const TestCertificate foreign = MakeTestCertificate("w1", &authority_);
  options_.client_ca_path = Write("workers.pem", workers.pem);
  Start();
  EXPECT_OK(Client(Secure("", &good)).Register("w1"));
  EXPECT_THAT(Client(Secure()).Register("w1"), HasReason("TOKEN_MISSING"));
  EXPECT_THAT(Client(Secure("", &foreign)).Register("w1"),
              StatusIs(absl::StatusCode::kUnavailable));
  // It makes no client of a worker.
  EXPECT_THAT(Client(Secure("", &good)).ListProblems(), HasReason("TOKEN_MISSING"));
  EXPECT_THAT(Client(Secure(admin_secret_)).Register("w1"), HasReason("SCOPE_MISSING"));
}

TEST_F(TlsTest, FilesThatDoNotFitAreNamed) {
  const TestCertificate other = MakeTestCertificate("other", &authority_);
  const struct {
    std::string ServerOptions::*path;
    std::string content;
    std::string reason;
    std::string want;
  } cases[] = {
      {&ServerOptions::tls_cert_path, "no certificate", "TLS_INVALID", "--tls-cert"},
      {&ServerOptions::tls_key_path, server_certificate_.pem, "TLS_INVALID", "--tls-key"},
      {&ServerOptions::tls_key_path, other.key_pem, "TLS_INVALID", "is not the key"},
      {&ServerOptions::client_ca_path, "", "TLS_INVALID", "--client-ca"},
  };
  for (const auto& c : cases) {
    ServerOptions options = options_;
    options.*c.path = Write("broken", c.content);
    const auto server = AssayServer::Start(options);
    EXPECT_THAT(server, HasReason(c.reason)) << c.want;
    EXPECT_THAT(std::string(server.status().message()), HasSubstr(c.want));
    options.*c.path = "/nonexistent/file.pem";
    EXPECT_THAT(AssayServer::Start(options), HasReason("PATH_NOT_FOUND")) << c.want;
  }
}

TEST_F(AccessTest, BeyondLoopbackNothingIsInTheClearAndNobodyUnknown) {
  options_.require_tokens = false;
  options_.listen = "0.0.0.0:0";
  EXPECT_THAT(AssayServer::Start(options_), HasReason("INSECURE_LISTEN"));
  options_.insecure_listen = true;
  // Behind a proxy on the same machine, callers of the whole world come from loopback.
  options_.listen = "127.0.0.1:0";
  Start();
  EXPECT_THAT(Client(At()).ListProblems(), HasReason("TOKEN_MISSING"));
  server_.reset();
  options_.listen = "0.0.0.0:0";
  Start();
  const std::string port = server_->address().substr(server_->address().rfind(':'));
  EXPECT_THAT(Client({.address = "127.0.0.1" + port}).ListProblems(), HasReason("TOKEN_MISSING"));
  EXPECT_OK(Client({.address = "127.0.0.1" + port, .token = admin_secret_}).ListProblems());
}

TEST_F(AccessTest, OnLoopbackNothingIsDemanded) {
  options_.require_tokens = false;
  Start();
  Client anybody(At());
  EXPECT_OK(anybody.ListProblems());
  EXPECT_OK(anybody.Register("w1"));
  EXPECT_OK(anybody.Drain("workers/w1"));
  EXPECT_OK(Client(At("whatever")).ListProblems());
}

}  // namespace
}  // namespace assay
