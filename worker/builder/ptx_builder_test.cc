// PTX is taken as it is, once it is known to be text. Skipped without bubblewrap.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/status.h"
#include "base/test_matchers.h"
#include "gmock/gmock.h"
#include "worker/builder/builder.h"
#include "worker/builder/cuda_builder.h"
#include "worker/builder/cuda_toolkit.h"
#include "worker/builder/device_builder_fixture.h"

namespace assay {
namespace {

using ::testing::HasSubstr;

constexpr char kPtx[] =
    "// by hand\r\n.version 7.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry nothing()\n{\n  ret;\n}\n";

class PtxBuilderTest : public DeviceBuilderTest {};

TEST_F(PtxBuilderTest, PtxIsTakenAsItIs) {
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<Builder> builder, MakePtxBuilder(Options()));
  BuildRequest request;
  request.files = {{"k.ptx", kPtx}, {"README.md", "text"}};
  request.sources = {"k.ptx"};
  request.macros = {{"BLOCK", 128}};
  ASSERT_OK_AND_ASSIGN(const BuildResult built, builder->Build(request));
  ASSERT_TRUE(built.ok) << built.log << built.message;
  EXPECT_FALSE(built.from_cache);
  ASSERT_OK_AND_ASSIGN(const std::string bytes,
                       ReadFile(built.artifact_path, limits::kArtifactBytesMax));
  EXPECT_EQ(bytes, kPtx);
  EXPECT_EQ(built.artifact_digest, Sha256Hex(kPtx));
  request.macros = {{"BLOCK", 256}};
  ASSERT_OK_AND_ASSIGN(const BuildResult again, builder->Build(request));
  EXPECT_TRUE(again.from_cache) << "parameters matter to the plan alone";
}

TEST_F(PtxBuilderTest, WhatIsNoPtxIsRefused) {
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<Builder> builder, MakePtxBuilder(Options()));
  const struct {
    std::string text;
    const char* message;
  } rows[] = {
      {"", "no .version"},
      {"ret;", "no .version"},
      {std::string("\177ELF cubin"), "not plain UTF-8"},
      {std::string(kPtx) + "\xff", "not plain UTF-8"},
      {std::string(kPtx) + std::string(1, '\0'), "not plain UTF-8"},
      {std::string(kPtx) + std::string(limits::kSourceBytesMax, ' '), "at most 1048576"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.message);
    BuildRequest request;
    request.files = {{"k.ptx", row.text}};
    request.sources = {"k.ptx"};
    ASSERT_OK_AND_ASSIGN(const BuildResult result, builder->Build(request));
    EXPECT_FALSE(result.ok);
    EXPECT_EQ(result.reason, "COMPILE_FAILED");
    EXPECT_THAT(result.message, HasSubstr(row.message));
  }
  BuildRequest request;
  request.files = {{"a.ptx", kPtx}, {"b.ptx", kPtx}};
  request.sources = {"a.ptx", "b.ptx"};
  ASSERT_OK_AND_ASSIGN(BuildResult result, builder->Build(request));
  EXPECT_THAT(result.message, HasSubstr("exactly one source"));
  request.sources = {"a.ptx"};
  request.options = {"-O3"};
  ASSERT_OK_AND_ASSIGN(result, builder->Build(request));
  EXPECT_EQ(result.reason, "OPTION_NOT_ALLOWED");
  const auto toolkit = FindCudaToolkit(CudaRoots());
  if (!toolkit.ok() || toolkit->ptxas.empty()) return;
  request.options.clear();
  request.files[0].second = ".version 7.0\n.target sm_80\n.address_size 64\nnonsense\n";
  ASSERT_OK_AND_ASSIGN(result, builder->Build(request));
  EXPECT_EQ(result.reason, "COMPILE_FAILED");
  ASSERT_FALSE(result.diagnostics.empty()) << result.log;
  EXPECT_EQ(result.diagnostics[0].line, 4);
}

}  // namespace
}  // namespace assay
