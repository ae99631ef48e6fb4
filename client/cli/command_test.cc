#include "client/cli/command.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "assay/v1/candidate.grpc.pb.h"
#include "client/cli/exit_code.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Printed {
  int code = 0;
  std::string out;
  std::string err;
};

Printed RunWords(const std::vector<std::string>& words) {
  Printed printed;
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  printed.code = RunCommandLine(words);
  printed.out = testing::internal::GetCapturedStdout();
  printed.err = testing::internal::GetCapturedStderr();
  return printed;
}

// Exit 2 and one line that says `what`; as JSON the code INVALID_ARGUMENT with reason USAGE.
void ExpectUsageError(std::vector<std::string> words, const std::string& what) {
  Printed printed = RunWords(words);
  EXPECT_EQ(printed.code, kExitError);
  EXPECT_EQ(printed.out, "");
  EXPECT_THAT(printed.err, HasSubstr(what));
  EXPECT_EQ(printed.err.find('\n'), printed.err.size() - 1) << printed.err;
  words.push_back("--json");
  printed = RunWords(words);
  EXPECT_EQ(printed.code, kExitError);
  EXPECT_THAT(printed.out, HasSubstr("\"code\":\"INVALID_ARGUMENT\",\"reason\":\"USAGE\""));
  EXPECT_EQ(printed.err, "");
}

TEST(CommandTest, UsageErrorsHaveAReason) {
  ExpectUsageError({"frobnicate"}, "unknown command 'frobnicate'");
  ExpectUsageError({"submit"}, "name at least one candidate");
  ExpectUsageError({"submit", "--frobnicate"}, "unknown flag --frobnicate");
  ExpectUsageError({"evaluations", "show"}, "expected one evaluation");
  ExpectUsageError({"leaderboard", "gelu", "--top", "x"}, "--top must be an integer");
}

TEST(CommandTest, AGroupOfCommandsListsThem) {
  const std::string known =
      "there are: evaluations list, evaluations show, evaluations watch, evaluations cancel";
  ExpectUsageError({"evaluations"}, "'evaluations' alone is no command; " + known);
  ExpectUsageError({"evaluations", "frob"}, "unknown command 'evaluations frob'; " + known);
  const Printed help = RunWords({"evaluations", "--help"});
  EXPECT_EQ(help.code, kExitPassed);
  EXPECT_THAT(help.out, HasSubstr("evaluations watch"));
  EXPECT_EQ(help.out.find("problems"), std::string::npos);
}

TEST(CommandTest, ArgumentsAreUtf8) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"evaluations", "list", "--filter", "label = \xff"},
                                             {"evaluations", "list", "--page-token=\xff"},
                                             {"leaderboard", "gelu", "--device", "\xff"},
                                             {"evaluations", "show", "\xff"},
                                             {"\xff"}}) {
    ExpectUsageError(words, "\\xff' is not UTF-8");
  }
}

TEST(CommandTest, AnArgumentIsNotEmpty) {
  ExpectUsageError({"problems", "create", ""}, "an argument is empty");
  ExpectUsageError({"submit", ""}, "an argument is empty");
}

TEST(CommandTest, AMessageStaysOnOneLine) {
  const Printed printed = RunWords({"submit", "/nonexistent/a\nb\x1b[31m", "--problem", "gelu"});
  EXPECT_EQ(printed.code, kExitError);
  EXPECT_THAT(printed.err, HasSubstr("/nonexistent/a\\x0ab\\x1b[31m\n"));
}

TEST(CommandTest, AddressesAreChecked) {
  ExpectUsageError({"fleet", "list", "--server", "127.0.0.1:99999"},
                   "--server or ASSAY_SERVER: '127.0.0.1:99999' is not HOST:PORT");
  ExpectUsageError({"up", "--listen", "127.0.0.1:99999"}, "--listen: '127.0.0.1:99999'");
  ExpectUsageError({"up", "--metrics-listen", "127.0.0.1:"}, "--metrics-listen: '127.0.0.1:'");
}

TEST(CommandTest, ListsTakeOneRangeOfLimits) {
  for (const char* list : {"evaluations", "candidates"}) {
    for (const char* limit : {"0", "1000001"}) {
      ExpectUsageError({list, "list", "--limit", limit},
                       "--limit must be an integer from 1 to 1000000");
    }
  }
}

// Has candidates without end, and notes how many each page was to have.
class EndlessCandidates final : public v1::CandidateService::Service {
 public:
  grpc::Status ListCandidates(grpc::ServerContext*, const v1::ListCandidatesRequest* request,
                              v1::ListCandidatesResponse* response) override {
    page_sizes.push_back(request->page_size());
    for (int i = 0; i < request->page_size(); ++i) response->add_candidates()->set_name("c");
    response->set_next_page_token(absl::StrCat("page", page_sizes.size()));
    return grpc::Status::OK;
  }

  std::vector<int> page_sizes;
};

TEST(CommandTest, CandidatesAreListedOverSeveralPages) {
  EndlessCandidates service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  const Printed printed = RunWords({"candidates", "list", "--limit", "1500", "--json", "--server",
                                    absl::StrCat("127.0.0.1:", port)});
  EXPECT_EQ(printed.code, kExitPassed);
  EXPECT_EQ(std::count(printed.out.begin(), printed.out.end(), '\n'), 1500);
  EXPECT_THAT(service.page_sizes, ElementsAre(1000, 500));
  EXPECT_THAT(printed.err, HasSubstr("--page-token page2"));
}

}  // namespace
}  // namespace assay
