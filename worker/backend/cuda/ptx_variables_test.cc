#include "worker/backend/cuda/ptx_variables.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay {
namespace {

using ::testing::ElementsAreArray;

TEST(PtxVariablesTest, FindsEveryDeclaration) {
  const struct {
    const char* ptx;
    std::vector<std::string> names;
  } cases[] = {
      {".global .u32 a;", {"a"}},
      {".visible .global .align 16 .b8 table[4096];", {"table"}},
      {".global .attribute(.managed) .align 8 .u64 p = 0;", {"p"}},
      {".global .v4 .f32 v; .global .s32 i = 3, j[2] = {1, 2}, k;", {"v", "i", "j", "k"}},
      {".global .f32 m[2][3] = {{1,2,3},{4,5,6}};\n.global .u8 s[3] = \"a;\";", {"m", "s"}},
      {".weak .global .align 4 .u32 _ZN1$x;", {"_ZN1$x"}},
      {".visible.global.align 4.u32 a;.global.v2.f32 b[2];", {"a", "b"}},
      {".file 1 \"a\\\"\n.global .u32 a; .file 2 \"b\"", {"a"}},
      // Not variables, or nothing writable.
      {".const .u32 c; .shared .b8 pool[16];", {}},
      {".global .texref t; .global .surfref s; .global .u32 a;", {"a"}},
      {".visible .entry k(.param .u64 .ptr .global .align 4 x) { ld.global.u32 %r, [a]; }", {}},
      {"// .global .u32 a;\n/* .global .u32 b; */ .file 1 \".global .u32 c;\"", {}},
      {".global", {}},
      {".global .u32 a[", {"a"}},
      {"", {}},
  };
  for (const auto& c : cases) {
    std::vector<std::string> names;
    for (const PtxVariable& variable : ScanPtxVariables(c.ptx)) names.push_back(variable.name);
    EXPECT_THAT(names, ElementsAreArray(c.names)) << c.ptx;
  }
}

TEST(PtxVariablesTest, MakesVisibleWhatHasNoLinkage) {
  const std::string ptx =
      ".global .u32 a, b;\n.visible .global .u32 c;\n.entry k() { .global .u32 d; ret; }\n"
      ".weak .global .u32 e; .global .u32 f;\n";
  const std::vector<PtxVariable> variables = ScanPtxVariables(ptx);
  ASSERT_EQ(variables.size(), 6u);
  EXPECT_TRUE(variables[3].in_function);
  EXPECT_EQ(MakeVariablesVisible(ptx, variables),
            ".visible .global .u32 a, b;\n.visible .global .u32 c;\n"
            ".entry k() { .global .u32 d; ret; }\n.weak .global .u32 e; .visible .global .u32 "
            "f;\n");
}

}  // namespace
}  // namespace assay
