#include "worker/backend/cuda/ptx_statements.h"

#include "absl/strings/str_cat.h"
#include "base/strings.h"
#include "gmock/gmock.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using Kind = PtxStatement::Kind;

// One line a statement.
std::vector<std::string> Lines(std::string_view ptx) {
  std::vector<std::string> lines;
  PtxStatements statements(ptx);
  PtxStatement statement;
  while (statements.Next(&statement)) {
    std::string line = absl::StrCat(statement.ptx_line, " ");
    if (statement.kind == Kind::kInstruction) {
      absl::StrAppend(&line, Av(statement.name), ": ", statement.opcode, " ");
      for (const std::string_view word : statement.operands) line.append(word);
      if (statement.line > 0) absl::StrAppend(&line, " at ", statement.file, ":", statement.line);
    } else {
      const char* const kinds[] = {"function ", "", "variable ", "alias "};
      absl::StrAppend(&line, kinds[static_cast<int>(statement.kind)], Av(statement.name),
                      statement.is_declaration ? " elsewhere" : "");
      for (const char byte : statement.data) {
        absl::StrAppend(&line, " ", static_cast<unsigned char>(byte));
      }
    }
    lines.push_back(line);
  }
  return lines;
}

TEST(PtxStatementsTest, ReadsFunctionsVariablesAndPlaces) {
  EXPECT_THAT(Lines(R"(.version 9.0
.target sm_80
.address_size 64
.extern .func (.param .b32 r) far_away (.param .b32 p);
.extern .shared .align 16 .b8 dynamic[];
.extern .global .u32 elsewhere;
.global .align 2 .b16 table[2][2] = {{1, -2}, {0x102, 3}};
.const .f32 one = 0f3F800000;
.global .u64 pointer = generic(table);
.visible .entry k(.param .u64 .ptr .global .align 4 k_0, .param .u32 k_1)
.maxntid 128, 1, 1
{
  .reg .b32 %r<4>;  // ld.global in a comment
  .loc 1 7 3
  .loc 2 99 5, function_name $L__info_string0, inlined_at 1 8 3
  @!%p1 ld /* why */ .global.L2::128B.u32 %r1, [%rd1+4];
  .loc 1 0 3
$L__BB0_2:
  { call.uni (retval0),
    far_away, (p0); }
}
.func g() { ret; }
.alias h, g;
.file 1 "kernel.cu"
.section .debug_info { .b8 1, 2
 .b32 .debug_abbrev }
)"),
              ElementsAre("4 function far_away elsewhere", "6 variable elsewhere elsewhere",
                          "7 variable table 1 0 254 255 2 1 3 0", "8 variable one 0 0 128 63",
                          "9 variable pointer 0 0 0 0 0 0 0 0", "10 function k",
                          "16 k: ld.global.L2::128B.u32 %r1,[%rd1+4] at 2:99",
                          "19 k: call.uni (retval0),far_away,(p0) at 2:99", "22 function g",
                          "22 g: ret ", "23 alias h"));
}

TEST(PtxStatementsTest, KnowsTheFilesAtTheEnd) {
  PtxStatements statements(".func f() { ret; } .file 1 \"a.cu\" .file 2 \"/x/b.h\", 12, 13");
  PtxStatement statement;
  while (statements.Next(&statement)) {
  }
  EXPECT_THAT(statements.files(), ElementsAre(std::pair(1, "a.cu"), std::pair(2, "/x/b.h")));
}

TEST(PtxStatementsTest, HasComparesWholeParts) {
  PtxStatement statement;
  statement.opcode = "ld.volatile.global.L1::evict_last.f32";
  EXPECT_TRUE(statement.Has("volatile"));
  EXPECT_TRUE(statement.Has("f32"));
  EXPECT_TRUE(statement.Has("L1::evict_last"));
  EXPECT_FALSE(statement.Has("f3"));
  EXPECT_FALSE(statement.Has("evict_last"));
}

TEST(PtxStatementsTest, EndsOnTextThatEndsAnywhere) {
  constexpr std::string_view kText =
      ".extern .func (.param .b32 r) f (.param .b32 p); .global .b8 t[2] = {1, 2};\n"
      ".entry k(.param .u64 a) { .loc 1 2 3, function_name x + 4, inlined_at 1 2 3\n"
      "@!%p ld.global.L2::128B.u32 %r, [%a]; lab: call (r), f, (p); } .file 1 \"a\"\n"
      ".section .debug { .b8 1 } .alias h, k;";
  for (size_t bytes = 0; bytes <= kText.size(); ++bytes) {
    SCOPED_TRACE(bytes);
    // No line may come from beyond the end.
    EXPECT_LE(Lines(kText.substr(0, bytes)).size(), 7u);
  }
}

}  // namespace
}  // namespace assay
