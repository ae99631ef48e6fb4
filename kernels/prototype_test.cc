#include <string>

#include "assay/v1/problem.pb.h"
#include "base/file.h"
#include "base/test_matchers.h"
#include "gtest/gtest.h"
#include "kernels/problem.h"
#include "kernels/testing/problems.h"

namespace assay {
namespace {

// Every type, outputs declared between inputs, both policies.
v1::Problem AllTypes() {
  return testing::ProblemFromText(R"pb(
    name: "mixed"
    axes { name: "m" }
    axes { name: "n" }
    tensors {
      name: "acc"
      dtype: I32
      role: OUTPUT
      shape: "m"
      tolerance { kind: BITWISE }
    }
    tensors { name: "a" dtype: F32 role: INPUT shape: "m" }
    tensors { name: "b" dtype: F64 role: INPUT shape: "m" }
    tensors {
      name: "y"
      dtype: F16
      role: OUTPUT
      shape: "m"
      tolerance { kind: SCALED }
    }
    tensors { name: "c" dtype: I8 role: INPUT shape: "m" }
    tensors { name: "d" dtype: U8 role: INPUT shape: "m" }
    tensors { name: "e" dtype: I32 role: INPUT shape: "m" }
    tensors { name: "f" dtype: F16 role: INPUT shape: "m" }
    tensors { name: "g" dtype: BF16 role: INPUT shape: "m" }
    tensors {
      name: "z"
      dtype: F32
      role: OUTPUT
      shape: "m"
      tolerance { kind: BITWISE }
    }
  )pb");
}

constexpr char kArguments[] =
    "const float* a, const double* b, const int8_t* c, const uint8_t* d, const int32_t* e, "
    "const uint16_t* f, const uint16_t* g, int32_t* acc, ";

TEST(PrototypeTest, InputsThenOutputsThenAxes) {
  EXPECT_EQ(CandidatePrototype(AllTypes()),
            std::string("#include <cstdint>\nextern \"C\" void mixed(") + kArguments +
                "uint16_t* y, float* z, int64_t m, int64_t n);\n");
  EXPECT_EQ(ReferencePrototype(AllTypes()),
            std::string("#include <cstdint>\nextern \"C\" void mixed_reference(") + kArguments +
                "double* y, float* z, int64_t m, int64_t n);\n");
}

TEST(PrototypeTest, GeneratedSourcesCompile) {
  if (!testing::HasCommand("g++")) GTEST_SKIP() << "there is no g++ on this machine";
  ASSERT_OK_AND_ASSIGN(const TemporaryDirectory folder, TemporaryDirectory::Create("prototype"));
  const std::string path = folder.path() + "/a.cc";
  for (const bool reference : {false, true}) {
    EXPECT_OK(testing::CompileCpp(path, InvokeSource(AllTypes(), reference), "-fsyntax-only"));
  }
  const std::string right = CandidatePrototype(AllTypes()) + "extern \"C\" void mixed(" +
                            kArguments +
                            "uint16_t* y, float* z, int64_t m, int64_t n) {"
                            " z[0] = a[0]; y[0] = f[0]; acc[0] = c[0] + d[0] + e[0] + (int)(m + n);"
                            " z[1] = (float)b[0] + g[0]; }";
  EXPECT_OK(testing::CompileCpp(path, right, "-fsyntax-only"));
  // A wrong definition clashes with the declaration before it.
  const std::string wrong =
      CandidatePrototype(AllTypes()) + "extern \"C\" int mixed(const float*) { return 0; }";
  EXPECT_THAT(testing::CompileCpp(path, wrong, "-fsyntax-only"),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(PrototypeTest, ProblemIdDropsThePrefix) {
  EXPECT_EQ(ProblemId("problems/gelu"), "gelu");
  EXPECT_EQ(ProblemId("gelu"), "gelu");
  EXPECT_EQ(ProblemId(""), "");
}

}  // namespace
}  // namespace assay
