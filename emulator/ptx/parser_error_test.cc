// Texts that are wrong, too large or random: each ends in a clear error, none in a crash.
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/strings.h"
#include "base/test_matchers.h"
#include "emulator/ptx/module.h"
#include "emulator/ptx/module_check.h"
#include "gtest/gtest.h"

namespace assay::emulator {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kHead[] = ".version 8.5 .target sm_90 .address_size 64 ";

std::string Repeat(std::string_view text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all.append(text);
  return all;
}

struct Case {
  std::string text;
  const char* want;  // the message begins so, behind "line N: "
};

void ExpectInvalid(std::string_view head, const Case& c, int line) {
  SCOPED_TRACE(c.text);
  EXPECT_THAT(ParseModule(absl::StrCat(Av(head), c.text)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       StartsWith(absl::StrCat("line ", line, ": ", c.want))));
}

TEST(ParserErrorTest, Beginning) {
  const Case cases[] = {
      {"", "expected '.version', with which PTX begins, but the text ends"},
      {"// nothing", "expected '.version', with which PTX begins, but the text ends"},
      {"\x7f"
       "ELF",
       "a character that PTX does not use: '\\x7f'"},
      {"hello", "expected '.version', with which PTX begins, found 'hello'"},
      {".version", "expected a version like 8.0, but the text ends"},
      {".version 9", "expected a version like 8.0, found '9'"},
      {".version 1e3", "expected a version like 8.0, found '1e3'"},
      {".version 8.123", "expected a version like 8.0, found '8.123'"},
      {".version 10.0", "PTX version 10.0 is outside of 1.0 to 9.x"},
      {".version 0.9", "PTX version 0.9 is outside of 1.0 to 9.x"},
      {".version 8.0", "expected '.target', but the text ends"},
      {".version 8.0 .target", "expected a target like sm_80, but the text ends"},
      {".version 8.0 .target compute_80",
       "'compute_80' is no target; one begins with sm_, like sm_80"},
      {".version 8.0 .target sm_80,", "expected an option of .target, but the text ends"},
      {".version 8.0 .target sm_80 .address_size 32", "addresses of 32 bits are not supported"},
      {".version 8.0 .target sm_80 .address_size 16",
       "the address size is 16, outside of 32 to 64"},
  };
  for (const Case& c : cases) ExpectInvalid("", c, 1);
}

TEST(ParserErrorTest, Tokens) {
  const Case cases[] = {
      {"/* no end", "a comment has no end: '/*'"},
      {"`", "a character that PTX does not use: '`'"},
      {"\xff\xfe", "a character that PTX does not use: '\\xff'"},
      {"\xc3\xa9", "a character that PTX does not use: '\\xc3'"},
      {".global .u32 x\xe2\x80\xae;", "a character that PTX does not use: '\\xe2'"},
      {".", "a name must follow the dot: '.'"},
      {".pragma \"abc", "a string does not end on its line: '\"'"},
      {".pragma \"abc\n\";", "a string does not end on its line"},
      {".pragma \"abc\\\n\";", "a string does not end on its line"},
      {".global .u32 x = 0x;", "a malformed integer: '0x'"},
      {".global .u32 x = 09;", "a malformed integer: '0'"},
      {".global .u32 x = 0b2;", "a malformed integer: '0b'"},
      {".global .u32 x = 12ab;", "a malformed integer: '12'"},
      {".global .u32 x = 18446744073709551616;", "an integer has more than 64 bits"},
      {".global .u32 x = 0x10000000000000000;", "an integer has more than 64 bits"},
      {".global .f32 x = 0f3F80;", "0f takes 8 and 0d takes 16 hexadecimal digits: '0f3F80'"},
      {".global .f32 x = 0f3F8000000;", "0f takes 8 and 0d takes 16 hexadecimal digits"},
      {".global .f64 x = 0d3F800000;", "0f takes 8 and 0d takes 16 hexadecimal digits"},
      {".global .f64 x = 1.5e;", "a malformed floating-point number"},
      {".global .f64 x = 1.5f;", "a malformed floating-point number"},
      {".global .f64 x = 1e999;", "a floating-point number is out of the range of a double"},
  };
  for (const Case& c : cases) ExpectInvalid(kHead, c, 1);
}

TEST(ParserErrorTest, ModuleLevel) {
  const Case cases[] = {
      {"x", "expected a directive, found 'x'"},
      {"}", "expected a directive, found '}'"},
      {".unknown", "'.unknown' is no directive that a module can have"},
      {".reg .u32 x;", "'.reg' is no directive that a module can have"},
      {".tex .u32 x;", "'.tex' is no directive that a module can have"},
      {".alias a, b;", "'.alias' is no directive that a module can have"},
      {".param .u32 x;", "'.param' is no directive that a module can have"},
      {".extern", "expected a variable or function, but the text ends"},
      {".visible x", "expected a variable or function, found 'x'"},
      {".file", "expected the number of .file, but the text ends"},
      {".file 1 x", "expected a file name, found 'x'"},
      {".file 99999999999 \"x\"", "the number of .file is 99999999999, outside of 0 to 2147483647"},
      {".section", "expected the name of a section, but the text ends"},
      {".section .debug_str x", "expected '{', found 'x'"},
      {".section .debug_str { { }", "'{' has no matching '}'"},
      {".section .debug_str { `", "a character that PTX does not use"},
      {".pragma x;", "expected a string, found 'x'"},
      {".pragma \"x\"", "expected ';', but the text ends"},
  };
  for (const Case& c : cases) ExpectInvalid(kHead, c, 1);
}

TEST(ParserErrorTest, Variables) {
  const Case cases[] = {
      {".global x;", "expected a type, found 'x'"},
      {".global .align 3 .u32 x;", "the alignment 3 is no power of two"},
      {".global .align 0 .u32 x;", "the alignment is 0, outside of 1 to 1048576"},
      {".global .attribute x", "expected '(', found 'x'"},
      {".global .attribute(x", "'(' has no matching ')'"},
      {".global .texref x;", "'.texref' is no type that can be declared here"},
      {".global .pred x;", "a variable cannot be a predicate"},
      {".global .u32 1;", "expected a name, found '1'"},
      {".global .u32 x", "expected ';', but the text ends"},
      {".global .u32 x<4>;", "expected ';', found '<'"},
      {".global .u32 x[-1];", "the size of an array is outside of 0 to"},
      {".global .u32 x[0xFFFFFFFFFFFFFFFF];", "the size of an array is outside of 0 to"},
      {".global .u32 x[1.5];", "the size of an array must be an integer"},
      {".global .u32 x[y];", "expected a constant, found 'y'"},
      {".global .u32 x[2;", "expected ']', found ';'"},
      {".global .u32 x[2][];", "only the first dimension of an array may be left out"},
      {".global .u32 x[][];", "only the first dimension of an array may be left out"},
      {".global .u32 x[];", "the size of 'x' is left out: it needs an initialiser or .extern"},
      {".global .u32 x; .global .u32 x;", "'x' is already declared"},
      {".func x; .global .u32 x;", "'x' is already declared"},
      {".global .u32 x; .func x;", "'x' is already declared"},
      {".shared .u32 x = 1;", "'x' cannot have an initialiser"},
      {".extern .global .u32 x = 1;", "'x' cannot have an initialiser"},
      {".global .u32 x = ;", "expected a constant, found ';'"},
      {".global .u32 x = \"abc\";", "expected a constant, found the string \"abc\""},
      {".global .u32 x = 1.5;",
       "the initialiser of 'x' of type .u32 cannot hold a floating-point number"},
      {".global .f16 x = 1;", "the initialiser of 'x' of type .f16 cannot hold an integer"},
      {".global .u32 x = y;",
       "the initialiser of 'x' of type .u32 cannot hold an address; one takes .u64 or .b64"},
      {".global .f64 x = y;", "the initialiser of 'x' of type .f64 cannot hold an address"},
      {".global .u64 x = y;", "'y' is neither a label nor declared"},
      {".global .u64 x = generic(y;", "expected ')', found ';'"},
      {".global .u64 x = generic(1);", "expected a name, found '1'"},
      {".global .u64 x = x+0xFFFFFFFFFFFF;", "an offset is outside of"},
      {".global .b8 x[8] = {0xFF(x)};",
       "the initialiser of 'x' has a masked address like 0xFF(name), which is not"},
      {".global .u32 x[2] = {1,2,3};", "the initialiser of 'x' has more elements than the array"},
      {".global .u32 x[2][2] = {{1,2,3}};",
       "the initialiser of 'x' has more elements than the array"},
      {".global .u32 x[2][2] = {{1},{2},{3}};",
       "the initialiser of 'x' has more elements than the array"},
      {".global .u32 x[2][2] = {1,{2,3}};",
       "the initialiser of 'x' opens a brace in the middle of a row"},
      {".global .u32 x[2] = {{1}};", "the initialiser of 'x' has more braces than dimensions"},
      {".global .u32 x[2] = {1 2};", "expected ',' or '}', found '2'"},
      {".global .u32 x[2] = {1,,2};", "expected a constant, found ','"},
      {".global .u32 x[2] = {1", "expected ',' or '}', but the text ends"},
      {".global .u32 x = 1/0;", "a constant expression divides by zero"},
      {".global .u32 x = 1%0;", "a constant expression divides by zero"},
      {".global .u32 x = 1.5<<1;", "'<<' does not take floating-point numbers"},
      {".global .u32 x = ~1.5;", "'~' does not take floating-point numbers"},
      {".global .u32 x = (.s64)1.5;", "a floating-point number cannot be cast"},
      {".global .u32 x = (1;", "expected ')', found ';'"},
      {".global .u32 x = 1?2;", "expected ':', found ';'"},
  };
  for (const Case& c : cases) ExpectInvalid(kHead, c, 1);
}

TEST(ParserErrorTest, Headers) {
  const Case cases[] = {
      {".entry", "expected the name of a function, but the text ends"},
      {".entry (.param .u32 r) k { }", "an entry returns nothing"},
      {".entry k", "expected '{' or ';', but the text ends"},
      {".entry k(", "expected '.param' or '.reg', but the text ends"},
      {".entry k(.global .u32 x) { }", "expected '.param' or '.reg', found '.global'"},
      {".entry k(.param .u32 x { }", "expected ')', found '{'"},
      {".entry k(.param .pred x) { }", "a parameter in memory cannot be a predicate"},
      {".entry k(.param .texref x) { }", "'.texref' is no type that can be declared here"},
      {".entry k(.param .u64 .ptr .align 5 x) { }", "the alignment 5 is no power of two"},
      {".func f(.reg .u32 x[2]) { }", "a register parameter can be no array and no vector"},
      {".func .attribute f { }", "expected '(', found 'f'"},
      {".entry k .maxntid { }", "expected a number of threads, found '{'"},
      {".entry k .maxntid 0 { }", "a number of threads is 0, outside of 1 to"},
      {".entry k .maxntid 1,1,1,1 { }", "a list of dimensions has at most three"},
      {".entry k .minnctapersm 99999999999 { }", "a number is 99999999999, outside of 0 to"},
      {".entry k .strange { }", "'.strange' is no directive of a function"},
      {".entry k { } .entry k { }", "function 'k' has a second body"},
      {".entry k(.param .u32 a, .param .u32 a) { }", "'a' is already declared in this scope"},
  };
  for (const Case& c : cases) ExpectInvalid(kHead, c, 1);
}

TEST(ParserErrorTest, Bodies) {
  const std::string head = absl::StrCat(kHead,
                                        ".global .u32 g; .func f { .reg .pred %p1; .reg .b32 "
                                        "%r<4>; .reg .v2 .f32 v; .shared .u32 s;\n");
  const Case cases[] = {
      {"", "the text ends inside of function 'f'"},
      {"{ {", "the text ends inside of function 'f'"},
      {"ret", "expected an operand or ';', but the text ends"},
      {"ret }", "expected an operand or ';', found '}'"},
      {"ret 1 }", "expected ';', found '}'"},
      {"5;", "expected an instruction, found '5'"},
      {"%r1;", "expected an instruction, found '%r1'"},
      {"`", "a character that PTX does not use"},
      {"add.s32 %r1, %r4;", "register '%r4' is neither declared nor a special register"},
      {"add.s32 %r01;", "register '%r01' is neither declared nor a special register"},
      {"mov.u32 %r1, %tid.q;", "register '%tid.q' is neither declared nor a special register"},
      {"mov.u32 %r1, v.z;", "'v' has no component '.z'"},
      {"mov.u32 %r1, g[1];",
       "array elements like g[1] are not supported; write the offset in bytes"},
      {"mov.u32 %r1, nowhere; }", "'nowhere' is neither a label nor declared"},
      {"bra nowhere; }", "'nowhere' is neither a label nor declared"},
      {"{ L: } bra L; }", "'L' is neither a label nor declared"},
      {"t: .branchtargets L; }", "'L' is neither a label nor declared"},
      {"L: L: }", "label 'L' is already declared in this scope"},
      {"%r1: }", "'%r1' is no name for a label"},
      {"_: }", "'_' is no name for a label"},
      {"t: .branchtargets 5;", "expected a label, found '5'"},
      {"t: .callprototype _ ()", "expected ';', but the text ends"},
      {"t: .callprototype `", "a character that PTX does not use"},
      {"@g bra L;", "'g' is no declared predicate register"},
      {"@%p2 bra L;", "'%p2' is no declared predicate register"},
      {"@5 bra L;", "expected a predicate register, found '5'"},
      {"@%r1 bra L;", "the guard '%r1' is no predicate"},
      {"@%p1;", "expected an instruction, found ';'"},
      {"x !s;", "'s' is no declared predicate register"},
      {"x %r1|5;", "expected a predicate register, found '5'"},
      {"x %r1,;", "expected an operand, found ';'"},
      {"x ,%r1;", "expected an operand, found ','"},
      {"x %r1 %r2;", "expected ';', found '%r2'"},
      {"x \"text\";", "expected an operand, found the string \"text\""},
      {"x [%r1;", "expected ']', found ';'"},
      {"x [%r1+%r2];", "expected a constant, found '%r2'"},
      {"x [%tid.x];", "the base of an address is neither a register nor a name"},
      {"x [v];", "the base of an address is neither a register nor a name"},
      {"x [1.5];", "an address must be an integer"},
      {"x [];", "expected a constant, found ']'"},
      {"x [%r1, ;", "expected an operand, found ';'"},
      {"x {%r1;", "expected '}', found ';'"},
      {"x (%r1);", "expected a constant, found '%r1'"},
      {"call (%r1;", "expected ')', found ';'"},
      {".reg .b32 %r<4>; }", "registers '%r<...>' are already declared in this scope"},
      {".reg .b32 v; }", "'v' is already declared in this scope"},
      {".reg .b32 s; }", "'s' is already declared in this scope"},
      {".reg .b32 5;", "expected the name of a register, found '5'"},
      {".reg .b32 q<-1>;", "expected a number of registers, found '-'"},
      {".reg .b32 q<5;", "expected '>', found ';'"},
      {".reg .v2 .b32 q<5>;", "ranges of vector registers are not supported"},
      {".reg .q32 q;", "'.q32' is no type that can be declared here"},
      {".reg .b32 q", "expected ';', but the text ends"},
      {".tex .u32 t;", "'.tex' is no directive of a function body"},
      {".entry k { }", "'.entry' is no directive of a function body"},
      {".extern x", "expected a state space, found 'x'"},
      {".shared .b32 q = 5;", "'q' cannot have an initialiser"},
      {".loc 1;", "expected the line of .loc, found ';'"},
      {".loc 1 2 3, what", "expected 'function_name' or 'inlined_at', found 'what'"},
      {".loc 1 2 3, inlined_at 1;", "expected a place of .loc, found ';'"},
      {".loc 1 99999999999 3", "the line of .loc is 99999999999, outside of 0 to"},
  };
  for (const Case& c : cases) ExpectInvalid(head, c, 2);
}

TEST(ParserErrorTest, LineNumbers) {
  EXPECT_THAT(ParseModule(absl::StrCat(kHead, "\r\n// a\n/*\n\n*/\n.func f {\n\n  x %q;\n}")),
              StatusIs(absl::StatusCode::kInvalidArgument, StartsWith("line 8: register '%q'")));
  // The use is named, not the end of the function.
  EXPECT_THAT(ParseModule(absl::StrCat(kHead, "\n.func f {\nbra L;\n\n\n}\n\n")),
              StatusIs(absl::StatusCode::kInvalidArgument, StartsWith("line 3: 'L'")));
}

TEST(ParserErrorTest, MessagesAreShortAndPrintable) {
  const std::string name(100'000, 'n');
  for (const std::string& text :
       {absl::StrCat(".func f { bra ", name, "; }"), absl::StrCat(".func f { x %", name, "; }"),
        absl::StrCat(".", name), absl::StrCat(".pragma ", name, ";"), std::string("\x1b[31m")}) {
    const auto module = ParseModule(absl::StrCat(kHead, text));
    ASSERT_FALSE(module.ok());
    EXPECT_LT(module.status().message().size(), 500u);
    EXPECT_EQ(module.status().message().find('\x1b'), absl::string_view::npos);
  }
}

TEST(ParserErrorTest, Limits) {
  ParseLimits limits;
  limits.text_bytes_max = 1'000'000;
  limits.instructions_max = 100;
  limits.items_max = 2'000;
  limits.registers_max = 50;
  limits.variable_bytes_max = 1000;
  limits.depth_max = 10;
  const std::string f = ".func f { .reg .b32 %r; ";
  const struct {
    std::string within;
    std::string beyond;
    const char* want;
  } cases[] = {
      {std::string(900'000, ' '), std::string(1'000'000, ' '), "bytes; at most 1000000 are read"},
      {absl::StrCat(f, Repeat("x;", 100), "}"), absl::StrCat(f, Repeat("x;", 101), "}"),
       "line 1: the text has more than 100 instructions"},
      {absl::StrCat(f, "x 1", Repeat(",1", 1900), ";}"),
       absl::StrCat(f, "x 1", Repeat(",1", 2000), ";}"),
       "line 1: the text has more than 2000 operands, modifiers, labels and declarations"},
      {absl::StrCat(f, "x", Repeat(".u", 1900), ";}"),
       absl::StrCat(f, "x", Repeat(".u", 2000), ";}"),
       "line 1: the text has more than 2000 operands"},
      {".func f { .reg .b32 %r<49>, a; }", ".func f { .reg .b32 %r<49>, a, b; }",
       "line 1: function 'f' declares more than 50 registers"},
      {".func f { .reg .b32 %r<50>; }", ".func f { .reg .b32 %r<999999999>; }",
       "declares more than 50 registers"},
      {"", ".func f { .reg .b32 %r<9223372036854775807>, %q<9223372036854775807>; }",
       "declares more than 50 registers"},
      {".global .b8 x[500], y[500];", ".global .b8 x[500], y[501];",
       "line 1: the variables take more than 1000 bytes"},
      {".global .b8 x[10][100];", ".global .b8 x[10][101];",
       "line 1: 'x' takes more than 1000 bytes"},
      {"", ".global .b8 x[9223372036854775807][9223372036854775807];",
       "'x' takes more than 1000 bytes"},
      {"", ".entry k(.param .b8 p[9223372036854775807]) { }", "'p' takes more than 1000 bytes"},
      {absl::StrCat(".func f {", Repeat("{", 9), Repeat("}", 9), "}"),
       absl::StrCat(".func f {", Repeat("{", 10)), "line 1: nested deeper than 10"},
      {absl::StrCat(f, "x ", Repeat("{", 9), "%r", Repeat("}", 9), ";}"),
       absl::StrCat(f, "x ", Repeat("{", 10), "1"), "line 1: nested deeper than 10"},
      {".global .u32 x = ((1));", absl::StrCat(".global .u32 x = ", Repeat("(", 100'000)),
       "nested deeper than 10"},
      {".global .u32 x = - - -1;", absl::StrCat(".global .u32 x = ", Repeat("- ", 100'000)),
       "nested deeper than 10"},
      {".global .u32 x = 1?2:1?2:3;", absl::StrCat(".global .u32 x = ", Repeat("1?1:", 100'000)),
       "nested deeper than 10"},
      // The names of both are NAME@FUNCTION: 500 bytes of 20 that are written.
      {absl::StrCat(".func ", Repeat("f", 500), " {", Repeat(".global .b8 a; {", 9), Repeat("}", 9),
                    "}"),
       absl::StrCat(".func ", Repeat("f", 40'000), " {", Repeat(".global .b8 a; {", 9)),
       "the text has more than 2000 operands"},
      {absl::StrCat(".func ", Repeat("f", 500), " { .global .b8 a;", Repeat("x a;", 90), "}"),
       absl::StrCat(".func ", Repeat("f", 5000), " { .global .b8 a;", Repeat("x a;", 90), "}"),
       "the text has more than 2000 operands"},
      // An empty array has rows all the same.
      {".global .b32 x[0][2][3];", ".global .b32 x[0][1048576][1048576];",
       "'x' takes more than 1000 bytes"},
      {".global .b32 x[][0][3] = {{}};", ".global .b32 x[][0][2305843009213693952] = {{{},5}};",
       "'x' takes more than 1000 bytes"},
      {"", absl::StrCat(".global .b8 x", Repeat("[1]", 17), ";"),
       "an array has more than 16 dimensions"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.want);
    EXPECT_OK(ParseModule(absl::StrCat(kHead, c.within), limits));
    EXPECT_THAT(ParseModule(absl::StrCat(kHead, c.beyond), limits),
                StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr(c.want)));
  }
}

// A quadratic parser would take minutes for some of these.
TEST(ParserErrorTest, BombsEndSoon) {
  const std::string f = ".func f { .reg .b32 %r<1000000>; ";
  const struct {
    const char* name;
    std::string begin;
    std::string unit;
    std::string end;
  } cases[] = {
      {"comments", "", "/* * */", ""},
      {"comment without end", "/*", "/*", ""},
      {"labels", f, "{L: bra L;}", "}"},
      {"uses before a label", f + "{L:}{", "bra L;", "L:}}"},
      {"uses in a list", f + "{L:}{t: .branchtargets L", ",L", "; L:}}"},
      {"uses in a call", f + "{L:}{call L, (L", ",L", "); L:}}"},
      {"uses at depth", f + Repeat("{", 60), "bra L;", Repeat("}", 60) + "L:}"},
      {"last register", f, "x %r999999;", "}"},
      {"declarations", "", ".func f; .weak .func f;", ""},
      {"scopes", f, "{.reg .b32 %r<9>; x %r1;}", "}"},
      {"parameters", f, "{.param .b32 p; st [p], 1;}", "}"},
      {"elements", ".global .b8 x[] = {1", ",1", "};"},
      {"rows", ".global .b8 x[][2] = {{1}", ",{1}", "};"},
      {"digits", ".global .b8 x = ", "0", ";"},
      {"sums", ".global .b8 x = 1", "+1", ";"},
      {"names", "", "x", ""},
      {"dots", "", ".x::y", ""},
      {"at signs", "", "@@\n", ""},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    const int count = 400'000 / static_cast<int>(c.unit.size());
    // Whether it parses is not the question.
    const auto module = ParseModule(absl::StrCat(kHead, c.begin, Repeat(c.unit, count), c.end));
    if (module.ok()) {
      EXPECT_EQ(CheckModule(*module), "");
    }
  }
}

// What mutations start from: a bit of everything.
std::vector<std::string> Samples() {
  return {
      absl::StrCat(
          kHead,
          ".file 1 \"a.cu\"\n.extern .shared .align 16 .b8 dyn[];\n"
          ".global .align 8 .u64 t[3] = {7, generic(g)+36, g-4};\n.global .f32 g[2][2] = {{1.5}, "
          "{0f3F800000}};\n"
          ".func (.param .b32 r) f(.param .align 8 .b8 p[24], .reg .pred q) .noreturn;\n"
          ".entry k(.param .u64 .ptr .align 1 a) .maxntid 128, 1, 1 {\n.reg .pred %p<3>; .reg .b32 "
          "%r<9>, x;\n"
          ".reg .b64 %rd<4>;\n.loc 1 2 3, function_name $L__s, inlined_at 1 2 3\n@!%p1 bra $L1;\n"
          "{ .param .b32 param0; st.param.b32 [param0+0], %r1; .reg .b32 %r<2>;\n"
          "call.uni (param0), f, (param0, 1+(2<<3)); }\nts: .branchtargets $L1, $L1;\n"
          "proto : .callprototype (.param .b32 _) _ (.param .b32 _);\n"
          "shfl.sync.bfly.b32 %r1|%p2, %r2, 1, 0x1f, -1;\nld.global.v2.f32 {%r1, _}, [%rd1+-128];\n"
          "cp.async.bulk.tensor.2d.shared::cluster.global [%r1], [%rd1, {%r1, %r2}], [12];\n$L1: "
          "ret;\n}\n"),
      absl::StrCat(kHead,
                   ".section .debug_str { .b8 1,2 }\n.const .f64 c = 0d3FF8000000000000;\n"
                   ".func g { .reg .v4 .f32 v; .reg .f16 lo; { mov.f32 v.x, 1e-3; L: bra L; } { L: "
                   "bra.uni L; } /* c */ }\n"),
  };
}

std::string Mutate(const std::vector<std::string>& samples, Random* random) {
  static const char* const kPieces[] = {"{",           "}",        "[",
                                        "]",           "(",        ")",
                                        ";",           ",",        ".reg .b32 %r<",
                                        "<999999999>", "/*",       "\"",
                                        "@",           "!",        "|",
                                        ":",           "::",       ".param",
                                        "0x",          "1e",       "-",
                                        "?",           "generic(", "\0",
                                        "\xff",        "\n",       "call ",
                                        "_",           "%r1",      ".branchtargets ",
                                        "$L1",         "[][]",     "= {"};
  std::string text = samples[random->Below(samples.size())];
  for (uint64_t changes = 1 + random->Below(3); changes > 0; --changes) {
    const size_t at = random->Below(text.size() + 1);
    switch (random->Below(5)) {
      case 0:
        text.resize(at);
        break;
      case 1:
        text.erase(at, 1 + random->Below(8));
        break;
      case 2:
        text.insert(at, kPieces[random->Below(std::size(kPieces))]);
        break;
      case 3:
        text.insert(at, text.substr(random->Below(text.size() + 1), random->Below(40)));
        break;
      default:
        if (at < text.size()) text[at] = static_cast<char>(random->Below(256));
    }
  }
  return text;
}

TEST(ParserErrorTest, MutationsEndInAStatus) {
  const std::vector<std::string> samples = Samples();
  for (const std::string& sample : samples) ASSERT_OK(ParseModule(sample));
  const char* const from_environment = std::getenv("ASSAY_FUZZ_SEED");
  const uint64_t seed =
      from_environment == nullptr ? 20 : std::strtoull(from_environment, nullptr, 10);
  std::cout << "seed " << seed << "\n";
  Random random(seed);
  ParseLimits limits;
  limits.variable_bytes_max = 1 << 20;
  int parsed = 0;
  for (int run = 0; run < 20'000; ++run) {
    const std::string text = Mutate(samples, &random);
    const auto module = ParseModule(text, limits);
    if (module.ok()) {
      ++parsed;
      ASSERT_EQ(CheckModule(*module), "") << "seed " << seed << " run " << run << "\n" << text;
    } else {
      ASSERT_THAT(module.status().code(), ::testing::AnyOf(absl::StatusCode::kInvalidArgument,
                                                           absl::StatusCode::kResourceExhausted))
          << text;
      ASSERT_THAT(std::string(module.status().message()), StartsWith("line ")) << text;
    }
  }
  // Both happen, or the mutations are of no use.
  EXPECT_GT(parsed, 100);
  EXPECT_LT(parsed, 19'000);
}

}  // namespace
}  // namespace assay::emulator
