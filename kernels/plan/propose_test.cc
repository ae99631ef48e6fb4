#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "assay/v1/candidate.pb.h"
#include "assay/v1/problem.pb.h"
#include "base/file.h"
#include "base/status.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "kernels/candidate.h"
#include "kernels/plan/propose.h"
#include "kernels/plan/source_scan.h"
#include "kernels/testing/problems.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// What ProposePlan looks at.
v1::Problem Problem(const std::string& name, const std::string& axes, const std::string& tensors) {
  return testing::ProblemFromText(absl::StrCat("name: \"problems/", name, "\" ", axes, tensors));
}

v1::Problem VectorAdd() {
  return Problem("vector_add", R"text(axes { name: "n" } )text",
                 R"text(tensors { name: "a" dtype: F32 role: INPUT shape: "n" }
                    tensors { name: "b" dtype: F32 role: INPUT shape: "n" }
                    tensors { name: "c" dtype: F32 role: OUTPUT shape: "n" })text");
}

v1::Problem Gemm() {
  return Problem("gemm_f32", R"text(axes { name: "m" } axes { name: "n" } axes { name: "k" } )text",
                 R"text(tensors { name: "a" dtype: F32 role: INPUT shape: "m" shape: "k" }
                    tensors { name: "b" dtype: F32 role: INPUT shape: "k" shape: "n" }
                    tensors { name: "c" dtype: F32 role: OUTPUT shape: "m" shape: "n" })text");
}

v1::Problem Softmax() {
  return Problem("softmax", R"text(axes { name: "rows" } axes { name: "cols" } )text",
                 R"text(tensors { name: "x" dtype: F32 role: INPUT shape: "rows" shape: "cols" }
                    tensors { name: "y" dtype: F32 role: OUTPUT shape: "rows" shape: "cols" })text");
}

v1::Problem ReduceSum() {
  return Problem("reduce_sum", R"text(axes { name: "n" } )text",
                 R"text(tensors { name: "x" dtype: F32 role: INPUT shape: "n" }
                    tensors { name: "y" dtype: F32 role: OUTPUT shape: "1" })text");
}

std::string Repeat(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

constexpr char kIndex[] = "{ int i = blockIdx.x * blockDim.x + threadIdx.x; }\n";

TEST(ProposePlanTest, MatchesByNameThenByOrder) {
  struct Case {
    const char* name;
    v1::Problem problem;
    std::string source;
    const char* plan;  // the launch's fields, blanks aside
    size_t notes;
  };
  const Case cases[] = {
      {"names", VectorAdd(),
       absl::StrCat("extern \"C\" __global__ void add(const float* __restrict__ a, const float* b, "
                    "float* c, int n) ",
                    kIndex),
       R"text(kernel: "add" grid: "ceil_div(n, 256)" block: "256" args: "a" args: "b" args: "c" args: "n")text",
       0},
      {"names in another order", VectorAdd(),
       absl::StrCat("extern \"C\" __global__ void add(int N, float *d_C, float const *d_B, "
                    "const float *d_A) ",
                    kIndex),
       R"text(kernel: "add" grid: "ceil_div(n, 256)" block: "256" args: "n" args: "c" args: "b" args: "a")text",
       0},
      {"order of pointers", VectorAdd(),
       absl::StrCat("extern \"C\" __global__ void add(const float* left, const float* right, "
                    "float* out, long long count) ",
                    kIndex),
       R"text(kernel: "add" grid: "ceil_div(n, 256)" block: "256" args: "a" args: "b" args: "c" args: "n")text",
       4},
      {"block of extern C, comments and strings", VectorAdd(),
       absl::StrCat("/* __global__ void no(int) {} */ extern \"C\" {\n"
                    "// __global__ void no2(int) {}\n"
                    "__device__ const char* s() { return \"__global__ void no3() {}\"; }\n"
                    "__global__ void __launch_bounds__(128, 2) add(const float* a, // x, y\n"
                    "  const float* b, float* /* float* d */ c, int n) ",
                    kIndex, "}\n"),
       R"text(kernel: "add" grid: "ceil_div(n, 128)" block: "128" args: "a" args: "b" args: "c" args: "n")text",
       0},
      {"bound by macro", VectorAdd(),
       absl::StrCat("#define THREADS 64\n"
                    "extern \"C\" __global__ __launch_bounds__(THREADS) void add(const float* a, "
                    "const float* b, float* c, int n) ",
                    kIndex),
       R"text(kernel: "add" grid: "ceil_div(n, 64)" block: "64" args: "a" args: "b" args: "c" args: "n")text",
       0},
      {"matrix", Gemm(),
       "extern \"C\" __global__ void mm(const float* A, const float* B, float* C, int M, int N, "
       "int K) {\n  int r = blockIdx.y * blockDim.y + threadIdx.y;\n"
       "  int q = blockIdx.x * blockDim.x + threadIdx.x;\n}\n",
       R"text(kernel: "mm" grid: "ceil_div(n, 16)" grid: "ceil_div(m, 16)" block: "16" block: "16" args: "a" args: "b" args: "c" args: "m" args: "n" args: "k")text",
       1},
      {"block for each row", Softmax(),
       "extern \"C\" __global__ void soft(const float* x, float* y, int rows, int cols) {\n"
       "  const float* row = x + (long)cols * blockIdx.x;\n  y += blockIdx.x * (size_t)cols;\n"
       "  for (int i = threadIdx.x; i < cols; i += blockDim.x) y[i] = row[i];\n}\n",
       R"text(kernel: "soft" grid: "rows" block: "256" args: "x" args: "y" args: "rows" args: "cols")text",
       1},
      {"tile of its own", VectorAdd(),
       "extern \"C\" __global__ void add(const float* a, const float* b, float* c, int n) {\n"
       "  int i = TILE * (int)blockIdx.x + threadIdx.x;\n}\n",
       R"text(grid: "ceil_div(n, 256)" block: "256")text", 0},
      {"index by itself", Softmax(),
       "extern \"C\" __global__ void soft(const float* x, float* y, int rows, int cols) {\n"
       "  int r = blockIdx.x; y[r] = x[threadIdx.x];\n}\n",
       R"text(kernel: "soft" grid: "rows" block: "256" args: "x" args: "y" args: "rows" args: "cols")text",
       1},
      {"element count", Softmax(),
       absl::StrCat("extern \"C\" __global__ void gelu(const float* x, float* y, size_t size) ",
                    kIndex),
       R"text(kernel: "gelu" grid: "ceil_div(rows * cols, 256)" block: "256" args: "x" args: "y" args: "rows * cols")text",
       1},
      {"one element out", ReduceSum(),
       absl::StrCat("extern \"C\" __global__ void sum(const float* x, float* y, int n) ", kIndex),
       R"text(kernel: "sum" grid: "ceil_div(n, 256)" block: "256" args: "x" args: "y" args: "n")text",
       1},
      {"no blocks", ReduceSum(),
       "extern \"C\" __global__ void sum(const float* x, float* y, int n) { y[0] = x[0]; }\n",
       R"text(kernel: "sum" grid: "1" block: "1" args: "x" args: "y" args: "n")text", 1},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(test.name);
    const absl::StatusOr<PlanProposal> proposal = ProposePlan(test.source, test.problem);
    ASSERT_OK(proposal);
    std::string joined;
    for (const char c : proposal->plan) {
      if (c == '\n')
        joined += ' ';
      else if (c != ' ' || (!joined.empty() && joined.back() != ' '))
        joined += c;
    }
    EXPECT_THAT(joined, HasSubstr(test.plan));
    EXPECT_THAT(proposal->notes, SizeIs(test.notes)) << proposal->notes[0];
  }
}

TEST(ProposePlanTest, RefusalsSayWhatStandsInTheWay) {
  struct Case {
    v1::Problem problem;
    std::string source;
    const char* text;
  };
  const Case cases[] = {
      {VectorAdd(), "", "no __global__ function"},
      {VectorAdd(), "extern \"C\" __global__ void add(const float* a);", "no __global__ function"},
      {VectorAdd(), "__global__ void add(float* a) {}", "line 1: kernel 'add' is not extern \"C\""},
      {VectorAdd(),
       "extern \"C\" __global__ void f(float* a) {}\nextern \"C\" __global__ void g(float* a) {}",
       "2 kernels: 'f' (line 1), 'g' (line 2)"},
      {VectorAdd(), "\nextern \"C\" __global__ void add(const float* a,\n float eps) {}",
       "line 3: parameter 'eps' is a 'float' by value"},
      {VectorAdd(),
       "extern \"C\" __global__ void add(const double* a, const float* b, float* c) {}",
       "points to 'double', but tensor 'a' is F32"},
      {VectorAdd(),
       "extern \"C\" __global__ void add(const float* a, const float* b, const float* c) {}",
       "is const, but tensor 'c' is an output"},
      {VectorAdd(),
       "extern \"C\" __global__ void add(const float* a, const float* d_a, float* c) {}",
       "'a', which another parameter has already"},
      {VectorAdd(),
       "extern \"C\" __global__ void add(const float* a, const float* b, float* c, float* tmp) {}",
       "'tmp' is a pointer, and no tensor of the problem is left for it; the tensors are 'a' (F32 "
       "input), 'b' (F32 input), 'c' (F32 output). If it is scratch, write the plan"},
      {VectorAdd(), "extern \"C\" __global__ void add(const float* a, const float* b) {}",
       "line 1: no parameter of kernel 'add' stands for the output 'c'; give it a pointer of that "
       "name. Its parameters are 'a', 'b'"},
      {Softmax(), "extern \"C\" __global__ void s(const float* x, float* y, int stride) {}",
       "'stride' has no name of an axis; the axes are 'rows', 'cols'"},
      {VectorAdd(),
       "extern \"C\" __global__ void add(const float* a, const float* b, float* c) { extern "
       "__shared__ float s[]; }",
       "extern __shared__"},
      {VectorAdd(),
       "extern \"C\" __global__ void __launch_bounds__(T) add(const float* a, const float* b, "
       "float* c) {}",
       "__launch_bounds__('T') is no number"},
      {VectorAdd(),
       "extern \"C\" __global__ void add(const float* a, const float* b, float* c) { c[blockIdx.y] "
       "= 0; }",
       "uses blockIdx.y, but the output 'c' has only 1"},
      {VectorAdd(),
       absl::StrCat("extern \"C\" __global__ void add(", Repeat("int n, ", 100), "int m) {}"),
       "more than 64 parameters"},
      {VectorAdd(), std::string((1 << 20) + 1, ' '), "at most 1048576"},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(test.source.substr(0, 200));
    const absl::Status status = ProposePlan(test.source, test.problem).status();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(test.text)));
    EXPECT_EQ(GetReason(status), "PLAN_NOT_PROPOSED");
  }
}

// What is proposed is a candidate that the service takes.
TEST(ProposePlanTest, TheCommentMakesACandidate) {
  const std::string source =
      "extern \"C\" __global__ void add(const float* a, const float* b, float* c, int n) {\n"
      "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) c[i] = a[i] + b[i];\n}\n";
  ASSERT_OK_AND_ASSIGN(const PlanProposal proposal, ProposePlan(source, VectorAdd()));
  EXPECT_EQ(proposal.kernel, "add");
  TemporaryDirectory directory = *TemporaryDirectory::Create("propose-test");
  const std::string path = directory.path() + "/add.cu";
  ASSERT_OK(WriteFileAtomically(path, proposal.comment + source));
  v1::Candidate candidate;
  ASSERT_OK(LoadCandidate(path, "vector_add", &candidate));
  EXPECT_OK(CheckCandidateAgainstProblem(candidate, VectorAdd()));
  EXPECT_EQ(candidate.spec().language(), v1::CUDA_CPP);
  EXPECT_EQ(candidate.spec().plan().launches(0).args_size(), 4);
}

TEST(ScanCudaSourceTest, WhatIsNotUnderstoodIsLeftOut) {
  for (const char* text :
       {"__global__", "__global__ void", "__global__ void f(", "__global__ void f(int a", "extern",
        "extern \"C\" {", "\"", "'", "R\"x(", "/*", "#define", "#define A \\", "}}}}",
        "__global__ void f(int a) {", "__launch_bounds__(", "__global__ __launch_bounds__(",
        "__global__ void f(, , ) {}", "__global__ void f(float (*g)(int)) {}"}) {
    SCOPED_TRACE(text);
    for (const ScannedKernel& kernel : ScanCudaSource(text).kernels) {
      EXPECT_THAT(kernel.name, Not(IsEmpty()));
    }
  }
  const ScannedSource source = ScanCudaSource(
      "#define BLOCK (32)\nconstexpr int kTile = 0x10, z;\nstatic const int kWidth = 48u;\n"
      "const float f = 1.5f;\n#define FN(x) 3\nauto r = R\"q(__global__ void n() {})q\";\n"
      "extern \"C\" __global__ void k(unsigned char* p, unsigned long long n, float v[16],\n"
      "  const struct S* s, T<int, 3>* t, void) { __shared__ int q; }\n");
  EXPECT_EQ(source.constants.at("BLOCK"), 32);
  EXPECT_EQ(source.constants.at("kWidth"), 48);
  EXPECT_EQ(source.constants.count("f"), 0u);
  ASSERT_THAT(source.kernels, SizeIs(1));
  const ScannedKernel& kernel = source.kernels[0];
  EXPECT_EQ(kernel.line, 7);
  ASSERT_THAT(kernel.parameters, SizeIs(5));
  EXPECT_EQ(kernel.parameters[0].type, "unsigned char");
  EXPECT_EQ(kernel.parameters[1].type, "unsigned long long");
  EXPECT_FALSE(kernel.parameters[1].is_pointer);
  EXPECT_EQ(kernel.parameters[2].name, "v");
  EXPECT_TRUE(kernel.parameters[2].is_pointer);
  EXPECT_EQ(kernel.parameters[3].name, "s");
  EXPECT_TRUE(kernel.parameters[3].is_const);
  EXPECT_EQ(kernel.parameters[4].name, "t");
  EXPECT_FALSE(source.has_dynamic_shared);
}

// A quadratic scanner would not end within the test's time limit.
TEST(ScanCudaSourceTest, HostileTextTakesLinearTime) {
  const std::string texts[] = {Repeat("__global__ __launch_bounds__(", 30000),
                               Repeat("__global__ ", 90000),
                               Repeat("__global__ a(){", 60000),
                               Repeat("extern \"C\" {", 70000),
                               Repeat("R\"", 500000),
                               Repeat("R\"aaaaaaaa(", 80000),
                               Repeat("/*", 500000),
                               Repeat("#\\\n", 300000),
                               "extern \"C\" __global__ void a(" + Repeat("int x,", 60000) + "){" +
                                   Repeat("blockIdx.x*2+", 60000) + "}"};
  for (const std::string& text : texts) {
    SCOPED_TRACE(text.substr(0, 40));
    EXPECT_LE(ScanCudaSource(text).kernels.size(), 60000u);
  }
}

}  // namespace
}  // namespace assay
