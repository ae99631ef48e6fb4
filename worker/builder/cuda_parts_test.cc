// What builders of device code know without a compiler: options, diagnostics, reports, headers,
// where a toolkit is.
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/status.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "worker/builder/builder.h"
#include "worker/builder/cuda_diagnostics.h"
#include "worker/builder/cuda_options.h"
#include "worker/builder/cuda_toolkit.h"
#include "worker/builder/hoisted_headers.h"
#include "worker/builder/left_out_lines.h"
#include "worker/builder/precompiled_headers.h"
#include "worker/builder/ptxas.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(CudaOptionsTest, SpellingsOfNvccBecomeThoseOfNvrtc) {
  const struct {
    const char* option;
    std::vector<std::string> compiler;
    const char* standard;
  } rows[] = {
      {"-use_fast_math", {"--use_fast_math"}, ""},
      {"--use_fast_math", {"--use_fast_math"}, ""},
      {"-fmad=false", {"--fmad=false"}, ""},
      {"--ftz=true", {"--ftz=true"}, ""},
      {"-prec-div=true", {"--prec-div=true"}, ""},
      {"--prec-sqrt=false", {"--prec-sqrt=false"}, ""},
      {"-maxrregcount=64", {"--maxrregcount=64"}, ""},
      {"-std=c++20", {}, "c++20"},
      {"-O3", {}, ""},
      {"-lineinfo", {}, ""},
      {"--expt-relaxed-constexpr", {}, ""},
      {"-w", {"--disable-warnings"}, ""},
      {"-DTILE=16", {"-DTILE=16"}, ""},
      {"-DFAST", {"-DFAST"}, ""},
      {"-DVALUE=(1+2)*3", {"-DVALUE=(1+2)*3"}, ""},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.option);
    CudaOptions options;
    EXPECT_TRUE(TakeCudaOption(row.option, &options));
    EXPECT_EQ(options.compiler, row.compiler);
    EXPECT_EQ(options.standard, row.standard);
    EXPECT_EQ(options.has_defines, std::string(row.option).starts_with("-D"));
  }
  for (const char* option : {"",
                             "-",
                             "--",
                             "-I/etc",
                             "-include",
                             "--include-path=/etc",
                             "-o",
                             "--pch",
                             "--use-pch=/tmp/x",
                             "--create-pch=x",
                             "--pch-dir=/tmp",
                             "-std=c++11",
                             "-std=gnu++17",
                             "-fmad=yes",
                             "-fmad",
                             "--maxrregcount=0",
                             "-maxrregcount=1000",
                             "-maxrregcount=6x",
                             "-gpu-architecture=compute_90",
                             "-arch=sm_90",
                             "-Xptxas",
                             "-dlto",
                             "-rdc=true",
                             "-D",
                             "-D1=2",
                             "-DA=\"x\"",
                             "-DA=a b",
                             "-DA(x)=x",
                             "-U__CUDA_ARCH__",
                             "-G",
                             "-ptx",
                             "@file",
                             "O3",
                             "--device-debug",
                             "-time=/tmp/x",
                             "--fdevice-time-trace=/tmp/x"}) {
    SCOPED_TRACE(option);
    CudaOptions options;
    EXPECT_FALSE(TakeCudaOption(option, &options));
    EXPECT_THAT(options.compiler, IsEmpty());
  }
}

TEST(CudaDiagnosticsTest, ReadsWhatNvrtcWrites) {
  const std::vector<BuildDiagnostic> parsed = ParseNvrtcDiagnostics(
      "inc/a.cuh(1): error: expected an expression\n"
      "  float twice(float x) { return x * 2 + ; }\n"
      "                                        ^\n\n"
      "kernel.cu(5): warning #177-D: variable \"x\" was declared but never referenced\n"
      "  \tint x;\n"
      "  \t    ^\n"
      "k(2).cu(7): catastrophic error: cannot open source file \"vector\"\n"
      "kernel.cu(9): note #2431-D: see\n"
      "  kernel.cu(3): error: an echo of the source\n"
      "At end of source: error: expected a \"}\"\n"
      "kernel.cu(2): note #3196-D: to match this \"{\"\n"
      "1 error detected in the compilation of \"kernel.cu\".\nAt end of source: word\n"
      "kernel.cu(x): error: no number\n(3): error: no file\nkernel.cu(3): other: word\n");
  ASSERT_THAT(parsed, SizeIs(6));
  EXPECT_EQ(parsed[0].file, "inc/a.cuh");
  EXPECT_EQ(parsed[0].line, 1);
  EXPECT_EQ(parsed[0].column, 39);
  EXPECT_EQ(parsed[0].severity, kSeverityError);
  EXPECT_EQ(parsed[0].message, "expected an expression");
  EXPECT_EQ(parsed[1].severity, kSeverityWarning);
  EXPECT_EQ(parsed[1].column, 6);
  EXPECT_THAT(parsed[1].message, HasSubstr("variable"));
  EXPECT_EQ(parsed[2].file, "k(2).cu");
  EXPECT_EQ(parsed[2].line, 7);
  EXPECT_EQ(parsed[2].column, 0);
  EXPECT_EQ(parsed[3].severity, kSeverityNote);
  EXPECT_EQ(parsed[4].severity, kSeverityError);
  EXPECT_EQ(Placed(parsed[4]), "expected a \"}\" at the end of the source");
  std::string many;
  for (int i = 0; i < 100; ++i) many += "a.cu(1): warning: w\n";
  many += "a.cu(2): error: e\n";
  const std::vector<BuildDiagnostic> capped = ParseNvrtcDiagnostics(many);
  ASSERT_THAT(capped, SizeIs(limits::kDiagnosticsMax));
  EXPECT_EQ(capped[0].severity, kSeverityError);
}

TEST(CudaDiagnosticsTest, FailuresAreCalledByTheirCause) {
  const struct {
    const char* log;
    const char* reason;
    const char* message;
  } rows[] = {
      {"k.cu(1): error: expected a \";\"", "COMPILE_FAILED", ""},
      {"k.cu(1): catastrophic error: cannot open source file \"/etc/passwd\"", "INCLUDE_FORBIDDEN",
       "k.cu:1: cannot open source file \"/etc/passwd\""},
      {"k.cu(1): catastrophic error: cannot open source file \"../../x.h\"", "INCLUDE_FORBIDDEN",
       "nothing else of the machine"},
      {"k.cu(1): catastrophic error: cannot open source file \"mine.h\"", "COMPILE_FAILED", ""},
      {"k.cu(1): catastrophic error: cannot open source file \"vector\"", "COMPILE_FAILED",
       "no host library"},
      {"k.cu(1): error: excessive recursion at instantiation of class \"D<200>\"", "COMPILER_LIMIT",
       "k.cu:1: excessive recursion"},
      {"k.cu(1): catastrophic error: #include file \"k.cu\" includes itself", "COMPILER_LIMIT",
       "includes itself"},
      {"k.cu(2): error: expression must have a constant value\nk.cu(2): note #2431-D: expression "
       "not folded to a constant due to excessive constexpr function call complexity",
       "COMPILER_LIMIT", "complexity"},
      {"k.cu(1): error: #error directive: cannot open source file \"/etc/passwd\"",
       "COMPILE_FAILED", ""},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.log);
    const CompileFailure failure = ClassifyNvrtcFailure(ParseNvrtcDiagnostics(row.log), {});
    EXPECT_EQ(failure.reason, row.reason);
    EXPECT_THAT(failure.message, HasSubstr(row.message));
    EXPECT_EQ(failure.message.empty(), std::string(row.message).empty());
  }
}

TEST(CudaDiagnosticsTest, HostCodeIsCalledWhatItIs) {
  const struct {
    const char* log;
    const char* source;  // of k.cu
    bool host;
  } rows[] = {
      {"k.cu(1): error: A function explicitly marked as a __host__ function is not allowed in JIT "
       "mode",
       "", true},
      {"k.cu(1): error: device-side kernel launch could not be processed as the required runtime "
       "APIs are not declared",
       "", true},
      {"k.cu(1): error: identifier \"cudaMalloc\" is undefined", "", true},
      {"k.cu(1): error: identifier \"cudart\" is undefined", "", false},
      {"k.cu(1): error: identifier \"my_cudaMalloc\" is undefined", "", false},
      {"k.cu(2): error: name followed by \"::\" must be a class or namespace name",
       "int a;\ntorch::Tensor f();\n", true},
      {"k.cu(2): error: this declaration has no storage class or type specifier",
       "\nPYBIND11_MODULE(a, m) {}", true},
      {"k.cu(1): error: namespace \"std\" has no member \"vector\"", "std::vector<int> v;", true},
      {"k.cu(1): error: expected a \";\"", "dim3 g(1) k<<<g, 32>>>(x);", true},
      {"k.cu(1): error: expected a \";\"", "int x = 1 // not torch::Tensor\n", false},
      {"k.cu(1): error: expected a \";\"", "int x = mat::y my_torch::z", false},
      {"k.cu(2): error: expected a \";\"", "torch::Tensor f();\nint x = 1\n", false},
      {"k.cu(9): error: expected a \";\"", "torch::Tensor f();\n", false},
      {"other.cuh(1): error: expected a \";\"", "torch::Tensor f();\n", false},
      {"k.cu(1): warning #1-D: x\nk.cu(2): error: expected a \";\"", "torch::Tensor f();\nint x",
       false},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.log);
    const CompileFailure failure =
        ClassifyNvrtcFailure(ParseNvrtcDiagnostics(row.log), {{"k.cu", row.source}});
    EXPECT_EQ(failure.reason, "COMPILE_FAILED");
    EXPECT_EQ(failure.message.find("device code only") != std::string::npos, row.host)
        << failure.message;
    EXPECT_EQ(failure.message.starts_with("k.cu:"), row.host) << failure.message;
  }
  for (const char* header : {"torch/extension.h", "ATen/ATen.h", "iostream", "sys/time.h"}) {
    const CompileFailure failure = ClassifyNvrtcFailure(
        ParseNvrtcDiagnostics(
            absl::StrCat("k.cu(3): catastrophic error: cannot open source file \"", header, "\"")),
        {});
    EXPECT_THAT(failure.message, HasSubstr("k.cu:3")) << header;
    EXPECT_THAT(failure.message, HasSubstr("remove the include")) << header;
  }
}

TEST(CudaDiagnosticsTest, ReadsWhatPtxasWrites) {
  const std::vector<BuildDiagnostic> parsed = ParsePtxasDiagnostics(
      "ptxas kernel.ptx, line 12; error   : Unknown symbol 'x'\n"
      "ptxas /src/kernel.ptx, line 3; warning : odd\n"
      "ptxas fatal   : Unresolved extern function 'gone'\n"
      "ptxas info    : 0 bytes gmem\n");
  ASSERT_THAT(parsed, SizeIs(3));
  EXPECT_EQ(parsed[0].file, "kernel.ptx");
  EXPECT_EQ(parsed[0].line, 12);
  EXPECT_EQ(parsed[0].message, "Unknown symbol 'x'");
  EXPECT_EQ(parsed[1].file, "kernel.ptx");
  EXPECT_EQ(parsed[1].severity, kSeverityWarning);
  EXPECT_EQ(parsed[2].severity, kSeverityError);
  EXPECT_EQ(parsed[2].message, "Unresolved extern function 'gone'");

  const std::vector<KernelResources> resources = ParsePtxasReport(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'first' for 'sm_80'\n"
      "ptxas info    : Function properties for first\n"
      "    128 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads\n"
      "ptxas info    : Used 40 registers, used 1 barriers, 128 bytes cumulative stack size, 4096 "
      "bytes smem, 380 bytes cmem[0]\n"
      "ptxas info    : Compiling entry function 'second' for 'sm_80'\n"
      "ptxas info    : Function properties for second\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 8 registers, used 0 barriers, 364 bytes cmem[0]\n"
      "ptxas info    : Function properties for helper\n"
      "    64 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads\n");
  ASSERT_THAT(resources, SizeIs(2));
  EXPECT_EQ(resources[0].kernel, "first");
  EXPECT_EQ(resources[0].registers, 40);
  EXPECT_EQ(resources[0].barriers, 1);
  EXPECT_EQ(resources[0].stack_bytes, 128);
  EXPECT_EQ(resources[0].spill_store_bytes, 12);
  EXPECT_EQ(resources[0].spill_load_bytes, 16);
  EXPECT_EQ(resources[0].static_shared_bytes, 4096);
  EXPECT_EQ(resources[1].kernel, "second");
  EXPECT_EQ(resources[1].registers, 8);
  EXPECT_EQ(resources[1].stack_bytes, 0);
  EXPECT_EQ(RealArchitecture("compute_90a"), "sm_90a");
}

std::vector<std::string> Hoist(const std::string& source) {
  return HoistedHeaders(
      source, [](const std::string& name) { return name == "mma.h" || name == "cub/cub.cuh"; },
      [](const std::string& name) { return name == "mine.cuh" || name == "cuda_fp16.h"; });
}

TEST(HoistedHeadersTest, OnlyWhatMayMoveMoves) {
  EXPECT_THAT(Hoist("/* assay-candidate\nplan {} */\n\n// x\n#include <mma.h>\n"
                    "#  include <cub/cub.cuh> // y\n#include <cstdint>\r\n#include \"mma.h\"\n"
                    "int x;\n#include <mma.h>\n"),
              ElementsAre("mma.h", "cub/cub.cuh"));
  for (const char* before :
       {"#define X 1\n", "#pragma once\n", "int x;\n", "#include \"mine.cuh\"\n",
        "#include <mine.cuh>\n", "#include \"unknown.h\"\n", "#include <cuda_fp16.h>\n", "#if 0\n",
        "#ifdef A\n", "#include MACRO\n", "#include <a.h> int x;\n", "#include <a.h\n",
        "#include \\\n<a.h>\n", "/* open\n", "/* */ x\n", "#include <../../mma.h>\n"}) {
    SCOPED_TRACE(before);
    EXPECT_THAT(Hoist(absl::StrCat(before, "#include <mma.h>\n")), IsEmpty());
  }
  EXPECT_THAT(Hoist("#include <mma.h>\n#define X\n#include <cub/cub.cuh>\n"), ElementsAre("mma.h"));
  EXPECT_THAT(Hoist(""), IsEmpty());
}

TEST(PrecompiledHeadersTest, MadeAtTheSecondTimeAndTheOldestGoFirst) {
  TemporaryDirectory directory = *TemporaryDirectory::Create("pch-test");
  PrecompiledHeaders headers(directory.path() + "/pch", 1000);
  EXPECT_FALSE(headers.ShouldMake("a"));
  EXPECT_TRUE(headers.ShouldMake("a"));
  EXPECT_FALSE(headers.ShouldMake("a"));
  for (size_t i = 0; i < 3 * limits::kPrecompiledHeaderSetsMax; ++i) {
    EXPECT_FALSE(headers.ShouldMake(absl::StrCat("key", i)));
  }
  EXPECT_FALSE(headers.Find("a").has_value());
  ASSERT_OK(headers.Store("a", std::string(400, 'a')));
  ASSERT_OK(headers.Store("b", std::string(400, 'b')));
  for (const auto& entry : std::filesystem::directory_iterator(directory.path() + "/pch")) {
    std::filesystem::last_write_time(
        entry.path(), std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  }
  ASSERT_TRUE(headers.Find("a").has_value());  // and is now the younger of the two
  ASSERT_OK(headers.Store("c", std::string(400, 'c')));
  EXPECT_TRUE(headers.Find("a").has_value());
  EXPECT_FALSE(headers.Find("b").has_value());
  EXPECT_TRUE(headers.Find("c").has_value());
}

TEST(PrecompiledHeadersTest, AFolderThatIsClosedIsNotReachable) {
  TemporaryDirectory directory = *TemporaryDirectory::Create("pch-test");
  ASSERT_OK(CreateDirectories(directory.path() + "/a/b"));
  ASSERT_EQ(chmod(directory.path().c_str(), 0700), 0);
  EXPECT_FALSE(IsReachableByAll(directory.path() + "/a/b"));
  ASSERT_EQ(chmod(directory.path().c_str(), 0755), 0);
  EXPECT_TRUE(IsReachableByAll(directory.path() + "/a/b"));
}

TEST(CudaToolkitTest, ToolkitsAndWheelsAreFound) {
  const struct {
    const char* name;
    std::vector<std::string> files;
    const char* library;  // folder and file
    std::vector<std::string> includes;
    const char* ptxas;
  } rows[] = {
      {"toolkit",
       {"lib64/libnvrtc.so.12", "lib64/libnvrtc.so.13", "lib64/libnvrtc.so.13.0.88",
        "lib64/libnvrtc-builtins.so.13.0", "include/cuda_fp16.h", "bin/ptxas"},
       "lib64/libnvrtc.so.13",
       {"include"},
       "bin/ptxas"},
      {"wheels of CUDA 13",
       {"nvidia/cu13/lib/libnvrtc.so.13", "nvidia/cu13/include/cuda_fp16.h"},
       "nvidia/cu13/lib/libnvrtc.so.13",
       {"nvidia/cu13/include"},
       ""},
      {"wheels of CUDA 12",
       {"nvidia/cuda_nvrtc/lib/libnvrtc.so.12", "nvidia/cuda_runtime/include/cuda_fp16.h",
        "nvidia/cuda_cccl/include/cub/cub.cuh", "nvidia/cuda_nvcc/bin/ptxas"},
       "nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
       {"nvidia/cuda_runtime/include", "nvidia/cuda_cccl/include"},
       "nvidia/cuda_nvcc/bin/ptxas"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    TemporaryDirectory directory = *TemporaryDirectory::Create("toolkit-test");
    const std::string root = std::filesystem::canonical(directory.path()).string();
    for (const std::string& file : row.files) {
      ASSERT_OK(CreateDirectories(std::filesystem::path(root + "/" + file).parent_path().string()));
      ASSERT_OK(WriteFileAtomically(root + "/" + file, "x"));
    }
    ASSERT_OK_AND_ASSIGN(const CudaToolkit toolkit, FindCudaToolkit({"/nowhere", root}));
    EXPECT_EQ(toolkit.root, root);
    EXPECT_EQ(toolkit.library_folder + "/" + toolkit.library, root + "/" + row.library);
    std::vector<std::string> includes;
    for (const std::string& include : row.includes) includes.push_back(root + "/" + include);
    EXPECT_EQ(toolkit.include_folders, includes);
    EXPECT_EQ(toolkit.ptxas, *row.ptxas == '\0' ? "" : root + "/" + row.ptxas);
  }
}

TEST(CudaToolkitTest, WhatIsMissingAndWhatToInstallIsSaid) {
  TemporaryDirectory directory = *TemporaryDirectory::Create("toolkit-test");
  ASSERT_OK(CreateDirectories(directory.path() + "/lib"));
  ASSERT_OK(WriteFileAtomically(directory.path() + "/lib/libnvrtc.so.13", "no headers"));
  const absl::Status status = FindCudaToolkit({directory.path()}).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("scripts/setup")));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable, HasSubstr(directory.path())));
  EXPECT_EQ(GetReason(status), kCudaNotInstalled);
}

TEST(LeftOutLinesTest, ErrorsNameTheLinesInTheirWay) {
  const HeaderTexts headers = {
      {"stdint.h", "#include <limits.h>\ntypedef int a_t;\ntypedef long b_t;\n"},
      {"math.h", "#define LARGE 1\n#define LARGER 2\n#define F(x) \\\n  (x)\n#define LARGE 3"}};
  const struct {
    const char* name;
    const char* log;
    HeaderLines lines;
  } rows[] = {
      {"nothing", "", {}},
      {"an error of its own", "k.cu(1): error: identifier \"q\" is undefined\n  x = q;\n", {}},
      {"declared again",
       "k.cu(1): error: invalid redeclaration of type name \"b_t\" (declared at line 3 of stdint.h)"
       "\n  typedef int b_t;\n              ^\n",
       {{"stdint.h", 3}}},
      {"overloads",
       "k.cu(2): error: more than one instance of overloaded function \"f\" matches:\n"
       "            function template \"A f(A)\" (declared at line 3 of math.h)\n"
       "            function template \"T f(T)\" (declared at line 1)\n"
       "  x = f(LARGE);\n",
       {{"math.h", 3}}},
      {"a macro",
       "k.cu(1): error: expected an identifier\n  const int LARGE = 2, y = LARGEST;\n",
       {{"math.h", 1}, {"math.h", 5}}},
      {"a warning is none",
       "k.cu(1): warning #47-D: (declared at line 3 of stdint.h)\n  LARGE\n",
       {}},
      {"other headers",
       "k.cu(1): error: x (declared at line 3 of inc/stdint.h) (declared at line )",
       {}},
      {"numbers",
       "k.cu(1): error: (declared at line 99999999999 of math.h) (declared at line -",
       {}},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(LinesInTheWay(row.log, headers), row.lines);
  }
}

TEST(LeftOutLinesTest, OtherLinesKeepTheirNumbers) {
  const HeaderLines lines = {{"a.h", 2}, {"a.h", 9}, {"b.h", 1}};
  EXPECT_EQ(WithoutLines("a.h", "one\ntwo\nthree", lines), "one\n\nthree\n");
  EXPECT_EQ(WithoutLines("c.h", "one\ntwo\n", lines), "one\ntwo\n");
  EXPECT_EQ(WithoutLines("a.h", "", lines), "");
}

}  // namespace
}  // namespace assay
