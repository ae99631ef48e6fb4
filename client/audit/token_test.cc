#include "client/audit/token.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Texts(std::string_view source) {
  std::vector<std::string> texts;
  for (const Token& token : Tokenize(source)) texts.emplace_back(token.text);
  return texts;
}

TEST(TokenizeTest, LeavesCommentsOutAndKeepsLiteralsWhole) {
  EXPECT_THAT(Texts("a // b\n/* c\n */ d"), ElementsAre("a", "d"));
  EXPECT_THAT(Texts("\"a // b\\\" c\" 'x' '\\''"), ElementsAre("\"a // b\\\" c\"", "'x'", "'\\''"));
  EXPECT_THAT(Texts("R\"x(a \" )y\" )x\" b"), ElementsAre("R\"x(a \" )y\" )x\"", "b"));
  EXPECT_THAT(Texts("1e-5f 0x1F 1'000 .5 2.e+3"),
              ElementsAre("1e-5f", "0x1F", "1'000", ".5", "2.e+3"));
  EXPECT_THAT(Texts("a<<=b->c+++d>=e"),
              ElementsAre("a", "<<=", "b", "->", "c", "++", "+", "d", ">=", "e"));
  EXPECT_THAT(Texts("#define X 1 \\\n  2\nx # y"),
              ElementsAre("#define X 1 \\\n  2", "x", "#", "y"));
}

TEST(TokenizeTest, EndsWhereTheTextEnds) {
  EXPECT_THAT(Texts(""), IsEmpty());
  for (const char* open : {"/* a", "\"a", "'", "R\"(a", "R\"", "#x \\", "a\\"}) {
    SCOPED_TRACE(open);
    for (const Token& token : Tokenize(open)) EXPECT_LE(token.end(), std::string_view(open).size());
  }
}

TEST(TokenizeTest, CountsLines) {
  const std::vector<Token> tokens = Tokenize("a\n\nb /*\n*/ c");
  EXPECT_EQ(tokens[1].line, 3);
  EXPECT_EQ(tokens[2].line, 4);
}

// Where the token that stands between two @ is.
Place PlaceOf(std::string source) {
  const size_t at = source.find('@');
  source.erase(source.rfind('@'), 1);
  source.erase(at, 1);
  const std::vector<Token> tokens = Tokenize(source);
  const std::vector<Place> places = FindPlaces(tokens);
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].begin == at) return places[i];
  }
  ADD_FAILURE() << "no token at " << at << " of " << source;
  return Place();
}

TEST(FindPlacesTest, KnowsBodiesLoopsSubscriptsAndTemplates) {
  EXPECT_TRUE(PlaceOf("void f() { @a@ = 1; }").in_body);
  EXPECT_TRUE(PlaceOf("namespace n { void f() { if (b) { @a@ = 1; } } }").in_body);
  EXPECT_FALSE(PlaceOf("namespace n { int @a@ = 1; }").in_body);
  EXPECT_FALSE(PlaceOf("struct S { int @a@; };").in_body);
  const std::string loop = "void f() { for (int i = 0; i < n; ++i) x[i + 1] = 0; }";
  EXPECT_EQ(PlaceOf("void f() { for (int i @=@ 0; i < n; ++i) x; }").for_clause, 1);
  EXPECT_EQ(PlaceOf("void f() { for (int i = 0; i @<@ g(n); ++i) x; }").for_clause, 2);
  EXPECT_EQ(PlaceOf("void f() { for (int i = 0; i < g(@n@); ++i) x; }").for_clause, 2);
  EXPECT_EQ(PlaceOf("void f() { for (int i = 0; i < n; @++@i) x; }").for_clause, 3);
  EXPECT_EQ(PlaceOf("void f() { for (int i = 0; i < n; ++i) @x@; }").for_clause, 0);
  EXPECT_TRUE(PlaceOf("void f() { x[i @+@ 1] = 0; }").in_subscript);
  EXPECT_FALSE(PlaceOf("void f() { g([&] { return a @+@ 1; }); }").in_subscript);
  EXPECT_TRUE(PlaceOf("void f() { static_cast@<@float>(x); }").is_template);
  EXPECT_TRUE(PlaceOf("void f() { std::vector<std::vector@<@int>> x; }").is_template);
  EXPECT_FALSE(PlaceOf("void f() { if (a @<@ b && c > d) x; }").is_template);
  EXPECT_FALSE(PlaceOf("void f() { for (; i @<@ n; ++i) x; }").is_template);
}

}  // namespace
}  // namespace assay
