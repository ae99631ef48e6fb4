// assay tokens and assay access log against a server that only remembers.
#include <grpcpp/grpcpp.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "assay/v1/access.grpc.pb.h"
#include "base/file.h"
#include "base/test_matchers.h"
#include "client/cli/command.h"
#include "client/cli/exit_code.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class RememberingService final : public v1::AccessService::Service {
 public:
  grpc::Status CreateToken(grpc::ServerContext* context, const v1::CreateTokenRequest* request,
                           v1::CreateTokenResponse* response) override {
    Remember(context);
    created = request->token();
    *response->mutable_token() = request->token();
    response->set_secret("assay_shown_once");
    return grpc::Status::OK;
  }
  grpc::Status ListAccessEvents(grpc::ServerContext* context,
                                const v1::ListAccessEventsRequest* request,
                                v1::ListAccessEventsResponse* response) override {
    Remember(context);
    v1::AccessEvent* const event = response->add_events();
    event->set_number(7);
    event->set_token("tokens/ci");
    event->set_resource("workers/\x1b[2Jw1");
    event->set_method("/assay.v1.FleetService/DrainWorker");
    event->set_code("OK");
    return grpc::Status::OK;
  }

  v1::Token created;
  std::vector<std::string> authorizations;

 private:
  void Remember(grpc::ServerContext* context) {
    for (const auto& [key, value] : context->client_metadata()) {
      if (key == "authorization") authorizations.emplace_back(value.data(), value.size());
    }
  }
};

class AccessCommandTest : public ::testing::Test {
 protected:
  void SetUp() override {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
  }
  void TearDown() override {
    unsetenv("ASSAY_TOKEN");
    server_->Shutdown();
  }
  int Run(std::vector<std::string> words) {
    words.push_back(absl::StrCat("--server=127.0.0.1:", port_));
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int code = RunCommandLine(words);
    out_ = testing::internal::GetCapturedStdout();
    err_ = testing::internal::GetCapturedStderr();
    return code;
  }

  RememberingService service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  std::string out_;
  std::string err_;
};

TEST_F(AccessCommandTest, TheSecretAloneGoesToStandardOutput) {
  EXPECT_EQ(Run({"tokens", "create", "ci", "--scope", "submit,work", "--expire-in", "1h",
                 "--requests-per-second=5", "--requests-burst=6", "--unfinished-max=7"}),
            kExitPassed)
      << err_;
  EXPECT_EQ(out_, "assay_shown_once\n");
  EXPECT_THAT(err_, Not(HasSubstr("assay_shown_once")));
  EXPECT_THAT(err_, HasSubstr("tokens/ci (submit,work)"));
  EXPECT_EQ(service_.created.name(), "tokens/ci");
  EXPECT_EQ(service_.created.scopes_size(), 2);
  EXPECT_TRUE(service_.created.has_expire_time());
  EXPECT_EQ(service_.created.requests_per_second(), 5);
  EXPECT_EQ(service_.created.requests_burst(), 6);
  EXPECT_EQ(service_.created.unfinished_evaluations_max(), 7);
  EXPECT_TRUE(service_.authorizations.empty());
}

TEST_F(AccessCommandTest, ATokenGoesWithEveryCall) {
  const TemporaryDirectory folder = *TemporaryDirectory::Create("cli");
  const std::string file = folder.path() + "/token";
  ASSERT_OK(WriteFileAtomically(file, "assay_of_the_file\n"));
  setenv("ASSAY_TOKEN", "assay_of_the_environment", 1);
  EXPECT_EQ(Run({"access", "log"}), kExitPassed) << err_;
  EXPECT_EQ(Run({"access", "log", "--token-file", file}), kExitPassed) << err_;
  EXPECT_THAT(service_.authorizations, ::testing::ElementsAre("Bearer assay_of_the_environment",
                                                              "Bearer assay_of_the_file"));
  EXPECT_EQ(Run({"access", "log", "--token-file", file + ".none"}), kExitError);
  EXPECT_EQ(service_.authorizations.size(), 2u);
}

TEST_F(AccessCommandTest, TheLogCannotDriveATerminal) {
  EXPECT_EQ(Run({"access", "log"}), kExitPassed) << err_;
  EXPECT_THAT(out_, HasSubstr("DrainWorker"));
  EXPECT_EQ(out_.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace assay
