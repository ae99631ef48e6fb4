// Kernels that no machine could hold, and texts that parse but make no program: each is refused,
// with what is wrong and where.
#include "emulator/program/builder.h"

#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/strings.h"
#include "base/test_matchers.h"
#include "emulator/program/decoder.h"
#include "gtest/gtest.h"

namespace assay::emulator {
namespace {

using ::testing::HasSubstr;

constexpr char kHead[] = ".version 8.5 .target sm_80 .address_size 64\n";

std::string Repeat(std::string_view text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all.append(text);
  return all;
}

// Of kernel k. The text must parse.
absl::StatusOr<std::unique_ptr<Program>> Build(std::string_view text) {
  const absl::StatusOr<Module> module = ParseModule(absl::StrCat(kHead, Av(text)));
  if (!module.ok()) {
    ADD_FAILURE() << module.status();
    return module.status();
  }
  return BuildProgram(
      *module, "k", AllOps(), [](std::string_view) { return uint64_t{256}; }, 80);
}

std::string Kernel(std::string_view body) {
  return absl::StrCat(
      ".entry k(.param .u64 a) { .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %d<9>; "
      ".reg .b128 %q<3>;\n",
      Av(body), "\nret; }");
}

// f0 calls f1, which calls f2 and so on.
std::string Chain(int functions) {
  std::string text = absl::StrCat(".func f", functions, " { ret; }\n");
  for (int i = functions - 1; i >= 0; --i) absl::StrAppend(&text, ".func f", i, ";\n");
  for (int i = 0; i < functions; ++i)
    absl::StrAppend(&text, ".func f", i, " { call f", i + 1, "; ret; }\n");
  return absl::StrCat(text, Kernel("call f0;"));
}

// A kernel whose branches each name all of `labels` labels.
std::string Branches(int branches, int labels) {
  return Kernel(absl::StrCat("L: t: .branchtargets L", Repeat(",L", labels - 1), ";\n",
                             Repeat("brx.idx %r1, t;", branches)));
}

TEST(BuilderTest, WhatIsTooLargeIsRefused) {
  const struct {
    const char* name;
    std::string within;
    std::string beyond;
    const char* want;
  } cases[] = {
      {"param space of a call", Kernel("{ .param .b8 p[65536]; }"),
       Kernel("{ .param .b8 p[1073741824]; }"), "needs more than 8192 KiB of registers"},
      {"param space of calls together", Kernel(Repeat("{ .param .b8 p[65536]; }", 3)),
       Kernel(Repeat("{ .param .b8 p[65536]; }", 5)), "needs more than 8192 KiB of registers"},
      {"parameter of a function", absl::StrCat(".func f(.param .b8 p[8]) { ret; }", Kernel("")),
       absl::StrCat(".func f(.param .b8 p[1073741824]) { ret; }",
                    Kernel("{ .param .b8 q[1]; call f, (q); }")),
       "needs more than 8192 KiB of registers"},
      {"parameters", ".entry k(.param .b8 p[32764]) { ret; }",
       ".entry k(.param .b8 p[32764], .param .b8 q) { ret; }",
       "takes more than 32764 bytes of parameters"},
      {"a parameter", "", ".entry k(.param .b8 p[1073741824]) { ret; }",
       "takes more than 32764 bytes of parameters"},
      {"place of a parameter", ".entry k(.param .align 64 .b8 p, .param .align 64 .b8 q) { ret; }",
       ".entry k(.param .b8 p, .param .align 1048576 .b8 q) { ret; }",
       "takes more than 32764 bytes of parameters"},
      {"local memory", Kernel(".local .b8 l[524288];"), Kernel(".local .b8 l[524289];"),
       "needs more than 512 KiB of local memory"},
      {"place in local memory", Kernel(".local .align 8 .b8 l[8]; .local .align 16 .b8 m[8];"),
       Kernel(".local .b8 l; .local .align 1048576 .b8 m;"),
       "needs more than 512 KiB of local memory"},
      {"calls", Chain(250), Chain(100'000), "calls nest deeper than 256 functions"},
      {"targets of a branch", Branches(1, 65535), Branches(1, 65536), "one of 65536 labels"},
      {"targets of all branches", Branches(60, 60'000), Branches(70, 60'000),
       "one of 60000 labels"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    if (!c.within.empty()) {
      EXPECT_OK(Build(c.within));
    }
    const auto program = Build(c.beyond);
    EXPECT_THAT(program, StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr(c.want)));
  }
}

TEST(BuilderTest, WrongOperandsAreRefused) {
  const struct {
    std::string body;
    const char* want;
  } cases[] = {
      {"ld.param.u32 %r1, [a+9223372036854775807];", "which has 8"},
      {"ld.param.u32 %r1, [a+5];", "4 bytes at 5 of a, which has 8"},
      {"ld.param.u32 %r1, [a+-1];", "4 bytes at -1 of a, which has 8"},
      {"ld.param.v4.u32 {%r1,%r2,%r3,%r4}, [a];", "16 bytes at 0 of a, which has 8"},
      {"st.global.b128 [%d1], 5;", "a constant of 128 bits"},
      {"{ .param .b32 r; call (r), vprintf, (a, a); }", "which is a parameter of the kernel"},
      {"{ .param .b64 p; call (a), vprintf, (p, p); }", "which is a parameter of the kernel"},
      {"{ .param .b64 p; call vprintf, (p, p, p); }", "passes 3 values to vprintf, which takes 2"},
      {"{ .param .b64 p; call vprintf, (p); }", "passes 1 values to vprintf, which takes 2"},
      {"{ .param .b64 p; call (p, p), vprintf, (p, p); }", "returns more than one value"},
      {"t: .branchtargets L; L: bra t;", "branches to a list of labels"},
      {"L: brx.idx %r1, L;", "has no list of labels"},
      {"call vprintf;", "passes 0 values to vprintf, which takes 2"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.body);
    EXPECT_THAT(Build(absl::StrCat(".extern .func (.param .b32 r) vprintf(.param .b64 p, "
                                   ".param .b64 q);\n",
                                   Kernel(c.body))),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         ::testing::AllOf(HasSubstr("PTX line 4"), HasSubstr(c.want))));
  }
}

TEST(BuilderTest, WhatASingleBlockNeedsOfClustersIsThere) {
  for (const char* line :
       {"mov.u32 %r1, %cluster_nctarank;", "mov.u32 %r1, %cluster_nctaid.y;",
        "mov.u32 %r1, %cluster_ctarank;", "mov.u32 %r1, %clusterid.x;",
        "mov.u32 %r1, %nclusterid.z;", "setmaxnreg.inc.sync.aligned.u32 240;", "fence.proxy.async;",
        "fence.proxy.async.shared::cta;", "fence.mbarrier_init.release.cluster;"}) {
    EXPECT_OK(Build(Kernel(line))) << line;
  }
}

TEST(BuilderTest, ThreadsOfABlock) {
  const struct {
    const char* directive;
    uint32_t want;
  } cases[] = {
      {"", 1024},
      {".maxntid 128, 1, 1", 128},
      {".maxntid 16, 16", 256},
      {".maxntid 1024, 1024, 64", 1024},
      {".maxntid 2147483647, 2147483647, 2147483647", 1024},
      {".maxntid 1048576, 1048576, 16777216", 1024},  // 2^64
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.directive);
    const auto program = Build(absl::StrCat(".entry k() ", c.directive, " { ret; }"));
    ASSERT_OK(program);
    EXPECT_EQ((*program)->max_threads, c.want);
  }
}

}  // namespace
}  // namespace assay::emulator
