// The whole server on a real data folder and port.
#include "server/server.h"

#include <grpcpp/grpcpp.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "assay/internal/v1/dispatch.grpc.pb.h"
#include "assay/v1/evaluation.grpc.pb.h"
#include "assay/v1/problem.grpc.pb.h"
#include "base/file.h"
#include "base/strings.h"
#include "base/test_matchers.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "server/problem_folder.h"
#include "server/services/test_problem.h"
#include "store/testing/fake_store.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

// Writes a problem as a folder that LoadProblemDirectory reads.
void WriteProblem(const std::string& directory, const v1::Problem& problem) {
  std::filesystem::create_directories(directory);
  v1::Problem text = problem;
  text.clear_files();
  std::string content;
  ASSERT_TRUE(google::protobuf::TextFormat::PrintToString(text, &content));
  ASSERT_OK(WriteFileAtomically(directory + "/problem.textproto", content));
  for (const v1::SourceFile& file : problem.files()) {
    ASSERT_OK(WriteFileAtomically(directory + "/" + file.path(), file.content()));
  }
}

class ProblemFolderTest : public ::testing::Test {
 protected:
  ProblemFolderReport Load(const std::string& directory) {
    auto report = LoadProblemFolder(directory, admission_, &store_, &catalogue_);
    EXPECT_THAT(report, IsOk());
    return report.ok() ? *report : ProblemFolderReport();
  }

  FakeStore store_;
  Catalogue catalogue_;
  EvaluationIds ids_{SystemClock()};
  Admission admission_{{.clock = SystemClock(), .catalogue = &catalogue_, .ids = &ids_}};
};

TEST_F(ProblemFolderTest, TakesNewAndNewerAndNamesChangedOnes) {
  ASSERT_OK_AND_ASSIGN(const TemporaryDirectory folder, TemporaryDirectory::Create("problems"));
  WriteProblem(folder.path() + "/twice", TwiceProblem("twice"));
  WriteProblem(folder.path() + "/again", TwiceProblem("again"));
  std::filesystem::create_directories(folder.path() + "/not_a_problem");
  std::filesystem::create_directories(folder.path() + "/broken");
  ASSERT_OK(WriteFileAtomically(folder.path() + "/broken/problem.textproto", "name: 7"));
  ProblemFolderReport report = Load(folder.path());
  EXPECT_EQ(report.created_count, 2);
  ASSERT_EQ(report.errors.size(), 1u);
  EXPECT_THAT(report.errors[0], HasSubstr(folder.path() + "/broken"));
  std::filesystem::remove_all(folder.path() + "/broken");

  report = Load(folder.path());
  EXPECT_EQ(report.created_count, 0);
  EXPECT_EQ(report.unchanged_count, 2);
  EXPECT_TRUE(report.errors.empty());

  v1::Problem changed = TwiceProblem("twice");
  changed.mutable_files(0)->mutable_content()->append("// changed\n");
  WriteProblem(folder.path() + "/twice", changed);
  report = Load(folder.path());
  EXPECT_EQ(report.unchanged_count, 1);
  ASSERT_EQ(report.errors.size(), 1u);
  EXPECT_THAT(report.errors[0], HasSubstr(folder.path() + "/twice"));
  EXPECT_THAT(report.errors[0], HasSubstr("raise its version"));

  // The digest leaves the summary out, but a change of it must not get lost.
  changed = TwiceProblem("twice");
  changed.set_summary("c = a + a");
  WriteProblem(folder.path() + "/twice", changed);
  report = Load(folder.path());
  ASSERT_EQ(report.errors.size(), 1u);
  EXPECT_THAT(report.errors[0], HasSubstr("raise its version"));

  changed.set_version(2);
  WriteProblem(folder.path() + "/twice", changed);
  report = Load(folder.path());
  EXPECT_EQ(report.created_count, 1);
  EXPECT_TRUE(report.errors.empty());
  EXPECT_EQ(catalogue_.Find("problems/twice")->version(), 2);
}

TEST_F(ProblemFolderTest, TakesTheAuditOfTheVeryContent) {
  ASSERT_OK_AND_ASSIGN(const TemporaryDirectory folder, TemporaryDirectory::Create("problems"));
  const std::string path = folder.path() + "/twice";
  WriteProblem(path, TwiceProblem("twice"));
  EXPECT_EQ(Load(folder.path()).created_count, 1);
  EXPECT_FALSE(catalogue_.Find("problems/twice")->has_audit());

  const auto write_audit = [&](std::string_view digest, std::string_view passed) {
    ASSERT_OK(WriteFileAtomically(
        path + "/audit.textproto",
        absl::StrCat("problem: \"problems/twice\" problem_version: 1 problem_digest: \"",
                     Av(digest), "\" passed: ", Av(passed))));
  };
  write_audit("of something else", "true");
  ProblemFolderReport report = Load(folder.path());
  ASSERT_EQ(report.errors.size(), 1u);
  EXPECT_THAT(report.errors[0], HasSubstr("audit the stored content"));
  EXPECT_FALSE(catalogue_.Find("problems/twice")->has_audit());

  write_audit(catalogue_.Find("problems/twice")->digest(), "true");
  EXPECT_TRUE(Load(folder.path()).errors.empty());
  EXPECT_EQ(catalogue_.Find("problems/twice")->audit().state(), v1::ProblemAuditSummary::ADMITTED);
  EXPECT_EQ(store_.GetProblem("problems/twice", 1)->audit().state(),
            v1::ProblemAuditSummary::ADMITTED);

  // What is recorded stands, whatever the folder says later.
  write_audit(catalogue_.Find("problems/twice")->digest(), "false");
  EXPECT_TRUE(Load(folder.path()).errors.empty());
  EXPECT_EQ(catalogue_.Find("problems/twice")->audit().state(), v1::ProblemAuditSummary::ADMITTED);
}

TEST_F(ProblemFolderTest, NamesAFolderThatIsMissing) {
  const auto report = LoadProblemFolder("/nonexistent/problems", admission_, &store_, &catalogue_);
  EXPECT_THAT(report, HasReason("PATH_NOT_FOUND"));
  EXPECT_THAT(std::string(report.status().message()), HasSubstr("/nonexistent/problems"));
}

class AssayServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto folder = TemporaryDirectory::Create("server");
    ASSERT_THAT(folder, IsOk());
    folder_ = std::make_unique<TemporaryDirectory>(*std::move(folder));
    WriteProblem(folder_->path() + "/problems/twice", TwiceProblem("twice"));
    options_.data_directory = folder_->path() + "/data";
    options_.problems_directory = folder_->path() + "/problems";
    options_.listen = "127.0.0.1:0";
  }

  static std::unique_ptr<v1::EvaluationService::Stub> Stub(const AssayServer& server) {
    return v1::EvaluationService::NewStub(
        grpc::CreateChannel(server.address(), grpc::InsecureChannelCredentials()));
  }

  std::unique_ptr<TemporaryDirectory> folder_;
  ServerOptions options_;
};

TEST_F(AssayServerTest, KeepsWhatItAcknowledgedOverARestart) {
  v1::CreateEvaluationRequest request;
  *request.mutable_candidate() = TwiceCandidate();
  request.set_request_id("once");
  std::string name;
  for (int start = 0; start < 2; ++start) {
    ASSERT_OK_AND_ASSIGN(const auto server, AssayServer::Start(options_));
    auto stub = Stub(*server);
    grpc::ClientContext context;
    v1::Evaluation evaluation;
    const grpc::Status status = stub->CreateEvaluation(&context, request, &evaluation);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(evaluation.state(), v1::QUEUED);
    if (start == 0) name = evaluation.name();
    EXPECT_EQ(evaluation.name(), name);
    server->Shutdown();
    server->Shutdown();
  }
}

TEST_F(AssayServerTest, EndsWatchesAndLongPollsWhenItStops) {
  ASSERT_OK_AND_ASSIGN(const auto server, AssayServer::Start(options_));
  auto stub = Stub(*server);
  v1::CreateEvaluationRequest request;
  *request.mutable_candidate() = TwiceCandidate();
  v1::Evaluation evaluation;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(stub->CreateEvaluation(&context, request, &evaluation).ok());
  }
  v1::WatchEvaluationRequest watch;
  watch.set_name(evaluation.name());
  grpc::ClientContext watch_context;
  auto reader = stub->WatchEvaluation(&watch_context, watch);
  v1::WatchEvaluationResponse response;
  ASSERT_TRUE(reader->Read(&response));
  server->Shutdown();
  EXPECT_FALSE(reader->Read(&response));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(AssayServerTest, RefusesAPortOrADataFolderInUse) {
  ASSERT_OK_AND_ASSIGN(const auto server, AssayServer::Start(options_));
  ServerOptions same_port = options_;
  same_port.data_directory = folder_->path() + "/other";
  same_port.listen = server->address();
  EXPECT_THAT(AssayServer::Start(same_port), HasReason("PORT_IN_USE"));
  ServerOptions same_folder = options_;
  EXPECT_THAT(AssayServer::Start(same_folder), HasReason("DATA_FOLDER_IN_USE"));
}

TEST_F(AssayServerTest, ServesMetricsAndPublishesACopy) {
  options_.metrics_listen = "127.0.0.1:0";
  options_.publish_path = folder_->path() + "/public.db";
  ASSERT_OK_AND_ASSIGN(const auto server, AssayServer::Start(options_));
  EXPECT_GT(server->metrics_port(), 0);
  server->Shutdown();  // waits for a copy in progress
  EXPECT_TRUE(std::filesystem::exists(options_.publish_path));
}

}  // namespace
}  // namespace assay
