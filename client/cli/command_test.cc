#include "client/cli/command.h"

#include <google/protobuf/util/json_util.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "assay/v1/candidate.grpc.pb.h"
#include "assay/v1/problem.grpc.pb.h"
#include "base/file.h"
#include "base/test_matchers.h"
#include "client/cli/exit_code.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/candidate.h"

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
  ExpectUsageError({"evaluations", "replay", "a", "b"}, "expected one evaluation");
  ExpectUsageError({"leaderboard", "gelu", "--top", "x"}, "--top must be an integer");
  ExpectUsageError({"tokens", "create", "ci"}, "--scope is needed");
  ExpectUsageError({"tokens", "create", "ci", "--scope", "root"}, "--scope takes read, submit");
  ExpectUsageError({"tokens", "create", "ci", "--scope=read", "--expire-in=soon"},
                   "--expire-in takes");
  ExpectUsageError({"up", "--listen", "0.0.0.0:7400"}, "serves this machine alone");
  ExpectUsageError({"fleet", "list", "--server", "judge:1", "--token-file", "/dev/null"},
                   "--token-file");
}

TEST(CommandTest, AGroupOfCommandsListsThem) {
  const std::string known =
      "there are: evaluations list, evaluations show, evaluations watch, evaluations cancel, "
      "evaluations replay";
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

class OneProblem final : public v1::ProblemService::Service {
 public:
  grpc::Status GetProblem(grpc::ServerContext*, const v1::GetProblemRequest* request,
                          v1::Problem* response) override {
    response->set_name(request->name());
    response->add_axes()->set_name("n");
    for (const char* name : {"x", "y"}) {
      v1::Tensor& tensor = *response->add_tensors();
      tensor.set_name(name);
      tensor.set_dtype(v1::F32);
      tensor.set_role(name[0] == 'x' ? v1::Tensor::INPUT : v1::Tensor::OUTPUT);
      tensor.add_shape("n");
    }
    return grpc::Status::OK;
  }
};

class ProposeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    address_ = absl::StrCat("127.0.0.1:", port);
  }

  std::string Write(const std::string& source) {
    const std::string path = folder_.path() + "/kernel.cu";
    EXPECT_OK(WriteFileAtomically(path, source));
    return path;
  }

  Printed Propose(const std::string& path, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"candidates", "propose",  path,    "--problem",
                                      "gelu",       "--server", address_};
    words.insert(words.end(), more.begin(), more.end());
    return RunWords(words);
  }

  TemporaryDirectory folder_ = *TemporaryDirectory::Create("propose-test");
  OneProblem service_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

constexpr char kPlainKernel[] =
    "// A plain kernel.\n"
    "extern \"C\" __global__ void gelu(const float* x, float* y, int count) {\n"
    "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < count) y[i] = x[i];\n}\n";

TEST_F(ProposeTest, TheProposalIsACandidate) {
  const std::string path = Write(kPlainKernel);
  Printed printed = Propose(path);
  EXPECT_EQ(printed.code, kExitPassed) << printed.err;
  EXPECT_THAT(printed.out, ::testing::EndsWith(kPlainKernel));
  EXPECT_THAT(printed.out, HasSubstr("grid: \"ceil_div(n, 256)\""));
  // What was guessed is said.
  EXPECT_THAT(printed.err, HasSubstr("parameter 'count' was taken for the number of elements, n"));
  EXPECT_EQ(*ReadFile(path, 10'000), kPlainKernel);

  const std::string proposed = printed.out;
  printed = Propose(path, {"--write"});
  EXPECT_EQ(printed.code, kExitPassed) << printed.err;
  EXPECT_EQ(*ReadFile(path, 10'000), proposed);
  v1::Candidate candidate;
  ASSERT_OK(LoadCandidate(path, "", &candidate));
  EXPECT_EQ(candidate.spec().problem(), "gelu");
  ASSERT_EQ(candidate.spec().plan().launches_size(), 1);
  EXPECT_EQ(candidate.spec().plan().launches(0).kernel(), "gelu");

  printed = Propose(path);
  EXPECT_EQ(printed.code, kExitError);
  EXPECT_THAT(printed.err, HasSubstr("already"));
}

TEST_F(ProposeTest, AsJsonItIsTheCandidate) {
  const Printed printed = Propose(Write(kPlainKernel), {"--json"});
  EXPECT_EQ(printed.code, kExitPassed) << printed.err;
  v1::Candidate candidate;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(printed.out, &candidate).ok());
  EXPECT_EQ(candidate.spec().language(), v1::CUDA_CPP);
  EXPECT_THAT(candidate.spec().plan().launches(0).args(), ElementsAre("x", "y", "n"));
  EXPECT_EQ(candidate.files(0).path(), "kernel.cu");
  EXPECT_THAT(candidate.files(0).content(), ::testing::StartsWith("/* assay-candidate"));
}

TEST_F(ProposeTest, WhatDoesNotMatchIsNamed) {
  const struct {
    const char* source;
    const char* message;
  } rows[] = {
      {"extern \"C\" __global__ void k(const float* x, const float* w, float* y, int n) {}",
       "parameter 'w' is a pointer, and no input of the problem is left for it; the tensors are "
       "'x' (F32 input), 'y' (F32 output)"},
      {"extern \"C\" __global__ void k(const float* x, int n) {}",
       "line 1: no parameter of kernel 'k' stands for the output 'y'; give it a pointer of that "
       "name. Its parameters are 'x', 'n'"},
      {"extern \"C\" __global__ void k(const float* x, float* y, int a, int b) {}",
       "parameter 'a' has no name of an axis; the axes are 'n'"},
      {"__global__ void k(const float* x, float* y, int n) {}", "is not extern \"C\""},
      {"int f() { return 1; }", "no __global__ function"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.source);
    const std::string path = Write(row.source);
    const Printed printed = Propose(path, {"--write"});
    EXPECT_EQ(printed.code, kExitError);
    EXPECT_THAT(printed.err, HasSubstr(row.message));
    EXPECT_THAT(Propose(path, {"--json"}).out, HasSubstr("PLAN_NOT_PROPOSED"));
    EXPECT_EQ(*ReadFile(path, 10'000), row.source);
  }
}

TEST_F(ProposeTest, FilesThatAreNone) {
  EXPECT_THAT(Propose(folder_.path() + "/missing.cu", {"--json"}).out, HasSubstr("PATH_NOT_FOUND"));
  ExpectUsageError({"candidates", "propose", "kernel.cc", "--problem", "gelu"}, "ends in .cu");
  ExpectUsageError({"candidates", "propose", "kernel.cu"}, "--problem NAME is missing");
}

}  // namespace
}  // namespace assay
