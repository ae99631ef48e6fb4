// Builds of device code, end to end. Skipped without bubblewrap; those with NVRTC also without a
// toolkit.
#include "worker/builder/cuda_builder.h"

#include <sys/personality.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/status.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "worker/builder/builder.h"
#include "worker/builder/cuda_toolkit.h"
#include "worker/builder/device_builder_fixture.h"
#include "worker/builder/diagnostics.h"
#include "worker/sandbox/cgroup_home.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kGood[] =
    "extern \"C\" __global__ void scale(float* x, int n) {\n"
    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n) x[i] *= 2.0f;\n}\n";

// Whether this machine lets a process do without address space randomisation.
bool CanFixAddresses() {
  const int before = personality(0xffffffff);
  if (before < 0 || personality(static_cast<unsigned>(before) | ADDR_NO_RANDOMIZE) < 0) {
    return false;
  }
  return personality(static_cast<unsigned>(before)) >= 0;
}

BuildRequest Request(const std::string& source) {
  BuildRequest request;
  request.files = {{"kernel.cu", source}};
  request.sources = {"kernel.cu"};
  return request;
}

class CudaBuilderTest : public DeviceBuilderTest {
 protected:
  void SetUp() override {
    DeviceBuilderTest::SetUp();
    if (IsSkipped()) return;
    const auto toolkit = FindCudaToolkit(CudaRoots());
    if (!toolkit.ok()) GTEST_SKIP() << toolkit.status().message();
  }

  std::unique_ptr<Builder> Make(const CudaBuilderOptions& options) {
    absl::StatusOr<std::unique_ptr<Builder>> builder = MakeCudaBuilder(options);
    EXPECT_OK(builder);
    return builder.ok() ? *std::move(builder) : nullptr;
  }

  BuildResult Build(const BuildRequest& request) { return BuildWith(Options(), request); }

  BuildResult BuildWith(const CudaBuilderOptions& options, const BuildRequest& request) {
    std::unique_ptr<Builder> builder = Make(options);
    if (builder == nullptr) return BuildResult();
    absl::StatusOr<BuildResult> result = builder->Build(request);
    EXPECT_OK(result.status());
    return result.ok() ? *std::move(result) : BuildResult();
  }

  std::string Ptx(const BuildResult& result) {
    const auto bytes = ReadFile(result.artifact_path, limits::kArtifactBytesMax);
    EXPECT_OK(bytes);
    return bytes.ok() ? *bytes : "";
  }
};

TEST_F(CudaBuilderTest, BuildsAndAnswersFromTheCache) {
  std::unique_ptr<Builder> builder = Make(Options());
  ASSERT_NE(builder, nullptr);
  EXPECT_THAT(builder->compiler(), HasSubstr("NVRTC "));
  ASSERT_OK_AND_ASSIGN(const BuildResult built, builder->Build(Request(kGood)));
  ASSERT_TRUE(built.ok) << built.log;
  EXPECT_FALSE(built.from_cache);
  GTEST_LOG_(INFO) << builder->compiler() << " took "
                   << absl::FormatDuration(built.compiler_duration) << " of "
                   << absl::FormatDuration(built.duration);
  EXPECT_GT(built.compiler_duration, absl::ZeroDuration());
  EXPECT_THAT(built.log, Not(HasSubstr("assay-nvrtc")));
  const std::string ptx = Ptx(built);
  EXPECT_EQ(Sha256Hex(ptx), built.artifact_digest);
  EXPECT_THAT(ptx, HasSubstr(".target sm_80"));
  EXPECT_THAT(ptx, HasSubstr(".visible .entry scale("));
  EXPECT_THAT(ptx, HasSubstr("\"kernel.cu\"")) << "lines lead to the candidate's own file";
  EXPECT_THAT(ptx, HasSubstr(".loc\t1 3 "));

  ASSERT_OK_AND_ASSIGN(const BuildResult again, builder->Build(Request(kGood)));
  EXPECT_TRUE(again.from_cache);
  EXPECT_EQ(again.artifact_digest, built.artifact_digest);
  EXPECT_EQ(again.resources.size(), built.resources.size());
  ASSERT_OK_AND_ASSIGN(const CudaToolkit toolkit, FindCudaToolkit(CudaRoots()));
  if (toolkit.ptxas.empty()) return;
  ASSERT_THAT(again.resources, SizeIs(1));
  EXPECT_EQ(again.resources[0].kernel, "scale");
  EXPECT_GT(again.resources[0].registers, 0);

  ASSERT_OK(WriteFileAtomically(built.artifact_path, ".version damaged"));
  ASSERT_OK_AND_ASSIGN(const BuildResult rebuilt, builder->Build(Request(kGood)));
  EXPECT_FALSE(rebuilt.from_cache);
  EXPECT_EQ(rebuilt.artifact_digest, built.artifact_digest) << "builds repeat byte for byte";
}

TEST_F(CudaBuilderTest, EverythingThatMattersChangesTheKey) {
  std::unique_ptr<Builder> builder = Make(Options());
  ASSERT_NE(builder, nullptr);
  ASSERT_OK_AND_ASSIGN(const BuildResult first, builder->Build(Request(kGood)));
  std::vector<BuildRequest> others(3, Request(kGood));
  others[0].options = {"-use_fast_math"};
  others[1].macros = {{"BLOCK", 4}};
  others[2].files[0].second += "// a comment\n";
  for (const BuildRequest& other : others) {
    ASSERT_OK_AND_ASSIGN(const BuildResult result, builder->Build(other));
    ASSERT_TRUE(result.ok) << result.log;
    EXPECT_FALSE(result.from_cache);
    EXPECT_NE(result.artifact_path, first.artifact_path);
  }
  CudaBuilderOptions options = Options();
  options.target = "compute_90";
  const BuildResult other = BuildWith(options, Request(kGood));
  ASSERT_TRUE(other.ok) << other.log;
  EXPECT_FALSE(other.from_cache);
  EXPECT_THAT(Ptx(other), HasSubstr(".target sm_90"));
}

TEST_F(CudaBuilderTest, HeadersMacrosAndSeveralSourcesWork) {
  BuildRequest request;
  request.files = {
      {"kernel.cu",
       "#include \"inc/step.cuh\"\n#include <inc/step.cuh>\n"
       "#ifndef BLOCK\n#error no BLOCK\n#endif\n"
       "extern \"C\" __global__ void first(float* x) { x[BLOCK] = step(x[0]); }\n"},
      {"inc/step.cuh", "#pragma once\n#include \"more.cuh\"\n"},
      {"inc/more.cuh", "__device__ inline float step(float x) { return x + BLOCK; }\n"},
      {"second.cu", "extern \"C\" __global__ void second(float* x) { *x = -2; }\n"}};
  request.sources = {"kernel.cu", "second.cu"};
  request.macros = {{"BLOCK", -3}};
  const BuildResult result = Build(request);
  ASSERT_TRUE(result.ok) << result.log;
  EXPECT_THAT(Ptx(result), HasSubstr(".entry first("));
  EXPECT_THAT(Ptx(result), HasSubstr(".entry second("));
  EXPECT_THAT(Ptx(result), HasSubstr("\"second.cu\""));
}

TEST_F(CudaBuilderTest, FailuresAreClassifiedAndPlaced) {
  const struct {
    const char* name;
    std::string source;
    const char* reason;
    const char* file;
    int line;
    const char* text;  // in the diagnostic or the message
  } rows[] = {
      {"syntax", "\nint x = ;\n", "COMPILE_FAILED", "kernel.cu", 2, "expected an expression"},
      {"broken off", "extern \"C\" __global__ void f(float* x) {\n  x[0] = 1;\n", "COMPILE_FAILED",
       "", 0, "expected a \"}\" at the end of the source"},
      {"name", "extern \"C\" __global__ void f(float* x) {\n  x[0] = nothing;\n}\n",
       "COMPILE_FAILED", "kernel.cu", 2, "\"nothing\" is undefined"},
      {"after a toolkit header", "#include <cuda_fp16.h>\n\n__device__ __half x = q;\n",
       "COMPILE_FAILED", "kernel.cu", 3, "\"q\" is undefined"},
      {"own header", "#include \"inc/bad.cuh\"\n", "COMPILE_FAILED", "inc/bad.cuh", 2, "expected"},
      {"missing header", "#include \"missing.h\"\n", "COMPILE_FAILED", "kernel.cu", 1, "missing.h"},
      {"host library", "#include <vector>\n", "COMPILE_FAILED", "kernel.cu", 1, "no host library"},
      {"host function", "#include <cstdio>\n__host__ void f() {}\n", "COMPILE_FAILED", "kernel.cu",
       2, "device code only"},
      {"host launcher", "__global__ void k() {}\nvoid run() { k<<<1, 32>>>(); }\n",
       "COMPILE_FAILED", "kernel.cu", 2, "device code only"},
      {"main program",
       "#include <cuda_runtime.h>\n__global__ void k(float* x) {}\n"
       "int main() {\n  float* x;\n  cudaMalloc(&x, 4);\n  k<<<1, 32>>>(x);\n}\n",
       "COMPILE_FAILED", "kernel.cu", 5, "device code only"},
      {"extension", "#include <torch/extension.h>\n", "COMPILE_FAILED", "kernel.cu", 1,
       "no host library"},
      {"wrapper", "__global__ void k() {}\ntorch::Tensor f(torch::Tensor x) { return x; }\n",
       "COMPILE_FAILED", "kernel.cu", 2, "device code only"},
      {"binding", "__global__ void k() {}\n\nPYBIND11_MODULE(name, m) { m.def(\"k\", &k); }\n",
       "COMPILE_FAILED", "kernel.cu", 3, "device code only"},
      {"after a standard header", "#include <cstdio>\n\nint y = g();\n", "COMPILE_FAILED",
       "kernel.cu", 3, "\"g\" is undefined"},
      {"host file", "#include \"/etc/passwd\"\n", "INCLUDE_FORBIDDEN", "kernel.cu", 1,
       "/etc/passwd"},
      {"host file by macro", "#define F </etc/shadow>\n#include F\n", "INCLUDE_FORBIDDEN",
       "kernel.cu", 2, "/etc/shadow"},
      {"host file upwards", "#include \"../../../etc/passwd\"\n", "INCLUDE_FORBIDDEN", "kernel.cu",
       1, "etc/passwd"},
      {"process", "#include \"/proc/self/environ\"\n", "INCLUDE_FORBIDDEN", "kernel.cu", 1,
       "/proc"},
      {"include itself", "#include \"kernel.cu\"\n", "COMPILER_LIMIT", "kernel.cu", 1, "itself"},
      {"endless template",
       "template <int k> struct D { static constexpr int v = D<k + 1>::v; };\n"
       "__device__ int x = D<0>::v;\n",
       "COMPILER_LIMIT", "kernel.cu", 1, "recursion"},
      {"machine words", "#error No space left on device\n", "COMPILE_FAILED", "kernel.cu", 1,
       "No space left"},
      {"helper's words", "#error assay-nvrtc: 1.0 ms, precompiled headers\n", "COMPILE_FAILED",
       "kernel.cu", 1, "assay-nvrtc"},
  };
  std::unique_ptr<Builder> builder = Make(Options());
  ASSERT_NE(builder, nullptr);
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    BuildRequest request = Request(row.source);
    request.files.push_back({"inc/bad.cuh", "// one\nint z = ;\n"});
    ASSERT_OK_AND_ASSIGN(const BuildResult result, builder->Build(request));
    EXPECT_FALSE(result.ok);
    EXPECT_EQ(result.reason, row.reason) << result.log;
    const auto error = std::find_if(
        result.diagnostics.begin(), result.diagnostics.end(),
        [](const BuildDiagnostic& diagnostic) { return diagnostic.severity == kSeverityError; });
    ASSERT_NE(error, result.diagnostics.end()) << result.log;
    EXPECT_EQ(error->file, row.file);
    EXPECT_EQ(error->line, row.line);
    EXPECT_THAT(error->message + result.message, HasSubstr(row.text));
    EXPECT_THAT(result.log, Not(HasSubstr("root:")));
    EXPECT_THAT(result.log, Not(HasSubstr("/src/")));
  }
}

TEST_F(CudaBuilderTest, WhatOnlyPtxasSeesIsACompileError) {
  ASSERT_OK_AND_ASSIGN(const CudaToolkit toolkit, FindCudaToolkit(CudaRoots()));
  if (toolkit.ptxas.empty()) GTEST_SKIP() << "ptxas is not installed";
  const struct {
    const char* source;
    const char* text;
  } rows[] = {
      {"extern \"C\" __global__ void f(float* x) { asm(\"nothing x;\"); *x = 1; }\n", "nothing"},
      {"extern \"C\" __global__ void f(float* x) { asm(\"add.f32 %0, 1;\" : \"+f\"(*x)); }\n",
       "'add'"},
  };
  for (const auto& row : rows) {
    const BuildResult result = Build(Request(row.source));
    EXPECT_FALSE(result.ok);
    EXPECT_EQ(result.reason, "COMPILE_FAILED");
    ASSERT_FALSE(result.diagnostics.empty()) << result.log;
    EXPECT_THAT(result.log, HasSubstr(row.text));
  }
}

TEST_F(CudaBuilderTest, WhatReachesBeyondTheModuleOrTheCallIsRefused) {
  const struct {
    const char* source;
    const char* reason;
    int line;
  } rows[] = {
      {"extern \"C\" __device__ float gone(float);\n"
       "extern \"C\" __global__ void f(float* x) { *x = gone(*x); }\n",
       "UNDEFINED_SYMBOL", 2},
      {"extern \"C\" __device__ int cudaGraphLaunch(void*, void*);\n"
       "extern \"C\" __global__ void f(void** x) {\n  cudaGraphLaunch(x[0], x[1]);\n}\n",
       "DEVICE_LAUNCH_FORBIDDEN", 3},
      {"#define PASTE(a, b) a##b\n"
       "extern \"C\" __global__ void f(float* x) {\n"
       "  asm volatile(\"griddep\" PASTE(, \"control.launch_\") \"dependents;\");\n  *x = 1;\n}\n",
       "DEPENDENT_LAUNCH_FORBIDDEN", 3},
      {"#include <assert.h>\n#include <stdio.h>\n"
       "extern \"C\" __global__ void f(int* x) { assert(*x); printf(\"%d\", *x); }\n",
       "", 0},
  };
  // It does not take a ptxas.
  CudaBuilderOptions options = Options();
  options.resource_report = false;
  for (const auto& row : rows) {
    SCOPED_TRACE(row.source);
    const BuildResult result = BuildWith(options, Request(row.source));
    EXPECT_EQ(result.ok, *row.reason == '\0') << result.log;
    EXPECT_EQ(result.reason, row.reason);
    if (result.ok) continue;
    ASSERT_FALSE(result.diagnostics.empty());
    EXPECT_EQ(result.diagnostics[0].file, "kernel.cu");
    EXPECT_EQ(result.diagnostics[0].line, row.line);
  }
}

// Sources of all kinds begin with these; NVRTC has none of them.
TEST_F(CudaBuilderTest, StandardHeadersCompile) {
  std::string includes;
  for (const char* name :
       {"stdint.h", "cstdint",  "inttypes.h", "cmath",       "math.h",  "float.h",
        "cfloat",   "limits",   "limits.h",   "climits",     "cstdio",  "stdio.h",
        "cassert",  "assert.h", "cstddef",    "stddef.h",    "cstring", "string.h",
        "cstdlib",  "stdlib.h", "algorithm",  "type_traits", "utility"}) {
    absl::StrAppend(&includes, "#include <", name, ">\n");
  }
  const std::string body =
      "static_assert(std::is_same<std::remove_cv_t<const int>, int>::value, \"\");\n"
      "static_assert(std::is_signed<char>::value && !std::is_signed<unsigned>::value, \"\");\n"
      "static_assert(sizeof(int64_t) == 8 && sizeof(std::uint8_t) == 1, \"\");\n"
      "static_assert(INT64_MIN < 0 && UINT64_MAX > 0 && CHAR_BIT == 8, \"\");\n"
      "static_assert(std::numeric_limits<float>::max() == FLT_MAX, \"\");\n"
      "static_assert(std::numeric_limits<float>::infinity() > FLT_MAX, \"\");\n"
      "static_assert(std::numeric_limits<int>::lowest() == INT_MIN, \"\");\n"
      "static_assert(std::max(1, 2) == 2 && std::min(1, 2) == 1, \"\");\n"
      "extern \"C\" __global__ void f(float* c, int32_t n, std::size_t m) {\n"
      "  assert(n > 0);\n"
      "  c[0] = std::sqrt(c[1]) + std::fmax(c[2], -INFINITY) + float(M_PI) + NAN;\n"
      "  memcpy(c + 4, c, 8);\n"
      "  printf(\"%d %\" PRIu64 \"\\n\", n, uint64_t(m));\n"
      "  int a = 1, b = 2;\n  std::swap(a, b);\n  c[7] = std::move(a) + std::abs(n);\n}\n";
  std::unique_ptr<Builder> builder = Make(Options());
  ASSERT_NE(builder, nullptr);
  for (const char* standard : {"-std=c++14", "-std=c++17", "-std=c++20"}) {
    SCOPED_TRACE(standard);
    BuildRequest request = Request(includes + body);
    request.options = {standard};
    ASSERT_OK_AND_ASSIGN(const BuildResult result, builder->Build(request));
    EXPECT_TRUE(result.ok) << result.log;
  }
}

// Kernels that were cut out of a PyTorch extension include nothing, or only cuda_runtime.h.
TEST_F(CudaBuilderTest, ConstantsAndTypesNeedNoHeader) {
  const std::string body =
      "extern \"C\" __global__ void f(float* c, int64_t n, uint32_t m) {\n"
      "  float best = -INFINITY, least = FLT_MAX;\n"
      "  for (int64_t i = 0; i < n; ++i) best = fmaxf(best, fminf(c[i], least));\n"
      "  c[0] = best * float(M_PI) + DBL_EPSILON * m;\n}\n";
  for (const char* includes :
       {"", "#include <cuda_runtime.h>\n", "#include <cuda_fp16.h>\n#include <float.h>\n",
        "#define INFINITY __int_as_float(0x7f800000)\ntypedef unsigned int uint32_t;\n"}) {
    SCOPED_TRACE(includes);
    const BuildResult result = Build(Request(absl::StrCat(includes, body)));
    EXPECT_TRUE(result.ok) << result.log;
  }
}

// NVRTC has none of these names, so sources that were written for it bring their own.
TEST_F(CudaBuilderTest, WhatASourceDefinesItselfWinsOverOurHeaders) {
  std::unique_ptr<Builder> builder = Make(Options());
  ASSERT_NE(builder, nullptr);
  for (const char* own :
       {"typedef unsigned long long uint64_t;\n", "typedef unsigned long uint64_t;\n",
        "using int64_t = long;\ntypedef char int8_t;\n", "typedef unsigned long uintptr_t;\n",
        "#include <stdint.h>\ntypedef unsigned long uint64_t;\n",
        "#include <cuda_fp16.h>\ntypedef unsigned long uint64_t;\n",
        "#include <cuda_fp16.h>\n\ntypedef unsigned long uint64_t;\n",
        "const float INFINITY = 1e38f;\n", "enum { INT_MAX = 5, M_E = 1 };\n",
        "#define M_PI 3.0f\n#define FLT_MAX 1.0f\n",
        "template <typename T, typename U> __device__ T fmax(T a, U b) { return a > b ? a : b; }\n",
        "template <typename T> __device__ T sqrt(T a) { return a; }\n"}) {
    SCOPED_TRACE(own);
    const std::string body =
        "extern \"C\" __global__ void f(uint64_t* n, int64_t m, int8_t c, uintptr_t p) {\n"
        "  uint32_t x = m;\n  n[0] = fmax(INFINITY, 3) + M_PI + sqrt(m) + INT_MAX + FLT_MAX + x;\n"
        "}\n";
    ASSERT_OK_AND_ASSIGN(const BuildResult result, builder->Build(Request(own + body)));
    EXPECT_TRUE(result.ok) << result.log;
    EXPECT_THAT(result.log, Not(HasSubstr("error")));
  }
  // An error of the source's own is shown as it was with the headers whole.
  ASSERT_OK_AND_ASSIGN(
      const BuildResult bad,
      builder->Build(Request("extern \"C\" __global__ void f(float* x) { *x = INFINITY + q; }\n")));
  ASSERT_EQ(bad.diagnostics.size(), 1u) << bad.log;
  EXPECT_THAT(bad.diagnostics[0].message, HasSubstr("\"q\" is undefined"));
}

// As C++ has it, and nvcc: an integer counts as a double, and so does what is mixed with one.
TEST_F(CudaBuilderTest, MathTakesMixedArguments) {
  const std::string body =
      "#include <cmath>\n"
      "template <typename A, typename B> struct Same { static constexpr bool value = false; };\n"
      "template <typename A> struct Same<A, A> { static constexpr bool value = true; };\n"
      "#define RETURNS(type, call) static_assert(Same<type, decltype(call)>::value, #call)\n"
      "extern \"C\" __global__ void f(float* c, double* d, int n, size_t m) {\n"
      "  RETURNS(double, pow(c[0], 2.0)); RETURNS(double, pow(2, 3)); RETURNS(double, pow(d[0], "
      "m));\n"
      "  RETURNS(float, pow(c[0], 2.0f)); RETURNS(double, fmax(c[0], 1.0));\n"
      "  RETURNS(float, fmin(c[0], 1.0f)); RETURNS(double, sqrt(n)); RETURNS(float, sqrt(c[0]));\n"
      "  c[0] = pow(c[0], 2.0) + std::pow(d[0], 0.5f) + fmax(0, c[1]) + std::sqrt(n) + exp(2) +\n"
      "         log(m) + ceil(n / 2) + atan2(c[2], 1.0) + fmod(d[1], 2.0f);\n}\n";
  const BuildResult result = Build(Request(body));
  EXPECT_TRUE(result.ok) << result.log;
}

TEST_F(CudaBuilderTest, TheToolkitsHeadersCompileBesideOurs) {
  std::unique_ptr<Builder> builder = Make(Options());
  ASSERT_NE(builder, nullptr);
  const std::string standard = "#include <cstdint>\n#include <climits>\n#include <cmath>\n";
  for (const std::string& includes :
       {absl::StrCat(standard, "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n"),
        absl::StrCat("#include <mma.h>\n#include <cuda_pipeline.h>\n", standard),
        absl::StrCat(standard, "#include <cooperative_groups.h>\n",
                     "#include <cooperative_groups/reduce.h>\n"),
        absl::StrCat("#include <cub/block/block_reduce.cuh>\n#include <cuda/std/limits>\n",
                     standard, "#include <limits>\n"),
        absl::StrCat("#include <cub/cub.cuh>\n", standard)}) {
    SCOPED_TRACE(includes);
    ASSERT_OK_AND_ASSIGN(const BuildResult result, builder->Build(Request(includes + kGood)));
    EXPECT_TRUE(result.ok) << result.log;
    GTEST_LOG_(INFO) << absl::FormatDuration(result.compiler_duration) << " of "
                     << absl::FormatDuration(result.duration);
  }
}

// From the second build on the same headers come precompiled, with the same result.
TEST_F(CudaBuilderTest, PrecompiledHeadersChangeNothingButTheTime) {
  std::unique_ptr<Builder> builder = Make(Options());
  CudaBuilderOptions plain_options = Options();
  plain_options.cache_directory = directory_.path() + "/plain";
  plain_options.precompiled_headers = false;
  std::unique_ptr<Builder> plain = Make(plain_options);
  ASSERT_NE(builder, nullptr);
  ASSERT_NE(plain, nullptr);
  for (int i = 0; i < 4; ++i) {
    BuildRequest request =
        Request(absl::StrCat("// number ", i, "\n#include <mma.h>\n#include <cstdint>\n", kGood));
    request.macros = {{"N", i}};
    ASSERT_OK_AND_ASSIGN(const BuildResult result, builder->Build(request));
    ASSERT_OK_AND_ASSIGN(const BuildResult expected, plain->Build(request));
    ASSERT_TRUE(result.ok) << result.log;
    ASSERT_TRUE(expected.ok) << expected.log;
    EXPECT_EQ(Ptx(result), Ptx(expected));
    EXPECT_EQ(result.log, expected.log);
    EXPECT_FALSE(expected.precompiled_headers);
    if (CanFixAddresses()) {
      EXPECT_EQ(result.precompiled_headers, i >= 1) << i;
    }
    GTEST_LOG_(INFO) << i << ": " << absl::FormatDuration(result.compiler_duration) << " of "
                     << absl::FormatDuration(result.duration) << ", without "
                     << absl::FormatDuration(expected.compiler_duration) << " of "
                     << absl::FormatDuration(expected.duration);
  }
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory_.path() + "/cache/pch")) {
    EXPECT_GT(entry.file_size(), 0u);
    ++files;
  }
  EXPECT_EQ(files, 1);
  // Errors are placed as without.
  ASSERT_OK_AND_ASSIGN(
      const BuildResult failed,
      builder->Build(Request("#include <mma.h>\n#include <cstdint>\nint x = ;\n")));
  ASSERT_FALSE(failed.diagnostics.empty()) << failed.log;
  EXPECT_EQ(failed.diagnostics[0].line, 3);
}

// A header of the candidate's that is named like one of the toolkit reaches nobody else.
TEST_F(CudaBuilderTest, ACandidateCannotPoisonWhatIsPrecompiled) {
  std::unique_ptr<Builder> builder = Make(Options());
  ASSERT_NE(builder, nullptr);
  const std::string evil = "#define POISON 1\n__device__ float poison() { return 6.0f; }\n";
  for (int i = 0; i < 4; ++i) {
    BuildRequest request = Request(absl::StrCat("#include <mma.h>\n// ", i, "\n", kGood));
    request.files.push_back({"mma.h", evil});
    request.files.push_back({"crt/mma.h", evil});
    request.files.push_back({"cuda_fp16.h", evil});
    ASSERT_OK(builder->Build(request).status());
  }
  for (int i = 0; i < 4; ++i) {
    ASSERT_OK_AND_ASSIGN(
        const BuildResult result,
        builder->Build(Request(absl::StrCat("#include <mma.h>\n// honest ", i, "\n#ifdef POISON\n",
                                            "#error poisoned\n#endif\n", kGood))));
    EXPECT_TRUE(result.ok) << result.log;
  }
}

TEST_F(CudaBuilderTest, BombsMeetTheirLimits) {
  CudaBuilderOptions options = Options();
  options.timeout = absl::Milliseconds(1500);
  options.precompiled_headers = false;
  const BuildResult slow = BuildWith(
      options, Request("template <int A, int B> struct S { static constexpr long v = "
                       "S<A - 1, B>::v + S<A - 1, B + (1 << A)>::v; };\n"
                       "template <int B> struct S<0, B> { static constexpr long v = B; };\n"
                       "__device__ long x = S<24, 0>::v;\n"));
  EXPECT_EQ(slow.reason, "COMPILE_TIMEOUT") << slow.log;
  EXPECT_THAT(slow.message, HasSubstr("1.5 s"));

  std::string flood;
  for (int i = 0; i < 40; ++i) flood += "#warning " + std::string(32000, 'w') + "\n";
  const BuildResult flooded = Build(Request(flood));
  EXPECT_EQ(flooded.reason, "COMPILE_OUTPUT_FLOOD") << flooded.log.substr(0, 1000);

  if (FindCgroupHome().memory_path.empty()) GTEST_SKIP() << FindCgroupHome().memory_note;
  options = Options();
  options.memory_bytes_max = 192 << 20;
  std::string macros = "#define M0 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1\n";
  for (int i = 1; i < 8; ++i) {
    macros += absl::StrCat("#define M", i, " ");
    for (int j = 0; j < 8; ++j) macros += absl::StrCat("M", i - 1, j < 7 ? " + " : "\n");
  }
  const BuildResult fat = BuildWith(options, Request(macros + "__device__ int x[] = {M7};\n"));
  EXPECT_EQ(fat.reason, "COMPILE_MEMORY") << fat.log;
}

TEST_F(CudaBuilderTest, OptionsAndLibrariesAreRefused) {
  BuildRequest request = Request(kGood);
  request.options = {"--use-pch=/etc/passwd"};
  EXPECT_EQ(Build(request).reason, "OPTION_NOT_ALLOWED");
  EXPECT_THAT(Build(request).message, HasSubstr("--use-pch"));
  request = Request(kGood);
  request.libraries = {"openblas"};
  EXPECT_EQ(Build(request).reason, "OPTION_NOT_ALLOWED");
  request = Request(kGood);
  request.macros = {{"A(x) x\n", 1}};
  EXPECT_EQ(Build(request).reason, "OPTION_NOT_ALLOWED");
}

TEST_F(CudaBuilderTest, ATargetThatNvrtcDoesNotKnowIsTheWorkers) {
  CudaBuilderOptions options = Options();
  options.target = "compute_30";
  const absl::Status status = MakeCudaBuilder(options).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("compute_30")));
  EXPECT_EQ(GetReason(status), kCudaTooOld);
}

TEST_F(DeviceBuilderTest, AMissingOrBrokenToolkitIsTheWorkers) {
  CudaBuilderOptions options = Options();
  options.cuda_roots = {directory_.path() + "/nowhere"};
  absl::Status status = MakeCudaBuilder(options).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("scripts/setup")));
  EXPECT_EQ(GetReason(status), kCudaNotInstalled);

  const std::string root = directory_.path() + "/broken";
  ASSERT_OK(CreateDirectories(root + "/lib"));
  ASSERT_OK(CreateDirectories(root + "/include"));
  ASSERT_OK(WriteFileAtomically(root + "/lib/libnvrtc.so.13", "not a library"));
  ASSERT_OK(WriteFileAtomically(root + "/include/cuda_fp16.h", ""));
  options.cuda_roots = {root};
  status = MakeCudaBuilder(options).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("cannot load NVRTC")));
  EXPECT_EQ(GetReason(status), kCudaNotInstalled);
}

}  // namespace
}  // namespace assay
