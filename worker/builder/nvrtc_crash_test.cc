// A compiler that crashes on one source, end to end: the source's fault, not the machine's.
// Skipped without bubblewrap.
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "worker/builder/builder.h"
#include "worker/builder/cuda_builder.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

// What assay-nvrtc calls, with a bug.
constexpr char kLibrary[] = R"(
#include <stdlib.h>
#include <string.h>
static const char* text;
static const char ptx[] = ".version 8.0";
int nvrtcVersion(int* major, int* minor) { *major = 13; *minor = 0; return 0; }
int nvrtcGetNumSupportedArchs(int* n) { *n = 1; return 0; }
int nvrtcGetSupportedArchs(int* a) { *a = 80; return 0; }
int nvrtcCreateProgram(void** p, const char* source, const char* name, int n,
                       const char* const* headers, const char* const* names) {
  text = source;
  return 0;
}
int nvrtcDestroyProgram(void** p) { return 0; }
int nvrtcCompileProgram(void* p, int n, const char* const* options) {
  if (strstr(text, "unusual") != NULL) *(volatile int*)8 = 1;
  return 0;
}
int nvrtcGetProgramLogSize(void* p, size_t* n) { *n = 1; return 0; }
int nvrtcGetProgramLog(void* p, char* log) { *log = 0; return 0; }
int nvrtcGetPTXSize(void* p, size_t* n) { *n = sizeof ptx; return 0; }
int nvrtcGetPTX(void* p, char* to) { memcpy(to, ptx, sizeof ptx); return 0; }
const char* nvrtcGetErrorString(int code) { return "success"; }
)";

TEST(NvrtcCrashTest, IsACompileErrorThatSaysSo) {
  if (access("/usr/bin/bwrap", X_OK) != 0) GTEST_SKIP() << "bubblewrap is not installed";
  ASSERT_OK_AND_ASSIGN(const TemporaryDirectory directory,
                       TemporaryDirectory::Create("nvrtc-crash"));
  ASSERT_EQ(chmod(directory.path().c_str(), 0755), 0);
  const std::string root = directory.path() + "/toolkit";
  ASSERT_OK(CreateDirectories(root + "/lib"));
  ASSERT_OK(CreateDirectories(root + "/include"));
  ASSERT_OK(WriteFileAtomically(root + "/include/cuda_fp16.h", ""));
  ASSERT_OK(WriteFileAtomically(root + "/nvrtc.c", kLibrary));
  std::string library = root + "/lib/libnvrtc.so.13";
  std::string source = root + "/nvrtc.c";
  char* const command[] = {const_cast<char*>("g++"),
                           const_cast<char*>("-xc"),
                           const_cast<char*>("-shared"),
                           const_cast<char*>("-fPIC"),
                           const_cast<char*>("-w"),
                           const_cast<char*>("-o"),
                           library.data(),
                           source.data(),
                           nullptr};
  pid_t compiler = 0;
  ASSERT_EQ(posix_spawnp(&compiler, command[0], nullptr, nullptr, command, environ), 0);
  int status = -1;
  ASSERT_EQ(waitpid(compiler, &status, 0), compiler);
  ASSERT_EQ(status, 0);

  CudaBuilderOptions options;
  options.cache_directory = directory.path() + "/cache";
  const char* bin = std::getenv("ASSAY_BIN_DIR");
  options.helper = absl::StrCat(bin == nullptr ? "bin" : bin, "/assay-nvrtc");
  options.cuda_roots = {root};
  options.resource_report = false;
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<Builder> builder, MakeCudaBuilder(options));
  BuildRequest request;
  request.files = {{"kernel.cu", "plain"}};
  request.sources = {"kernel.cu"};
  ASSERT_OK_AND_ASSIGN(const BuildResult built, builder->Build(request));
  EXPECT_TRUE(built.ok) << built.log;
  request.files[0].second = "unusual";
  ASSERT_OK_AND_ASSIGN(const BuildResult crashed, builder->Build(request));
  EXPECT_FALSE(crashed.ok);
  EXPECT_EQ(crashed.reason, "COMPILE_FAILED");
  EXPECT_THAT(crashed.message, HasSubstr("crashed on this source alone (signal 11"));
}

}  // namespace
}  // namespace assay
