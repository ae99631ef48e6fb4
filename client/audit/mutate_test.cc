#include "client/audit/mutate.h"

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/strings.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace assay {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const MutateOptions kOptions = {.axes = {"rows", "cols"}, .roundings = {"audit_bf16"}};

std::string Wrapped(std::string_view body) {
  return absl::StrCat("void f(const float* x, float* y, long rows, long cols) {", Av(body), "}");
}

// "family: body" of every mutation of a body.
std::vector<std::string> Mutants(std::string_view body) {
  const std::string empty = Wrapped("");
  std::vector<std::string> found;
  for (const Mutation& mutation : FindMutations(Wrapped(body), kOptions)) {
    const std::string& text = mutation.source;
    found.push_back(absl::StrCat(mutation.family, ": ",
                                 text.substr(empty.size() - 1, text.size() - empty.size())));
  }
  return found;
}

TEST(MutateTest, EveryFamilyHasItsSlips) {
  struct Case {
    const char* body;
    const char* mutant;
  };
  const Case cases[] = {
      {"y = a + b;", "operator: y = a - b;"},
      {"y = a * b;", "operator: y = a / b;"},
      {"if (a == b) y = 1;", "operator: if (a != b) y = 1;"},
      {"y = std::max(a, b);", "operator: y = std::min(a, b);"},
      {"y = _mm256_add_ps(a, b);", "operator: y = _mm256_sub_ps(a, b);"},
      {"if (a < b) y = 1;", "boundary: if (a <= b) y = 1;"},
      {"for (long i = 0; i < n; ++i) g(i);", "boundary: for (long i = 1; i < n; ++i) g(i);"},
      {"for (long i = 0; i < n; ++i) g(i);", "boundary: for (long i = 0; i < n - 1; ++i) g(i);"},
      {"for (long i = 0; i < n; ++i) g(i);", "boundary: for (long i = 0; i < n; i += 2) g(i);"},
      {"for (; i < n; ++i) g(i);", "boundary: for (; false && i < n; ++i) g(i);"},
      {"y = a * b + c;", "dropped: y = a * b ;"},
      {"y = a + b * c;", "dropped: y = a ;"},
      {"y = a * g[b](c)->d;", "dropped: y = a ;"},
      {"g(a);", "dropped: ;"},
      {"if (a) y = 1;", "dropped: if (false && (a)) y = 1;"},
      {"if (a) y = 1;", "dropped: if (true || (a)) y = 1;"},
      {"y = x[i * cols + j];", "index: y = x[j * cols + i];"},
      {"y = x[i * cols + j];", "index: y = x[i * rows + j];"},
      {"y = x[i];", "index: y = x[(i) + 1];"},
      {"x += cols;", "index: x += rows;"},
      {"sum += a;", "accumulator: sum = a;"},
      {"double sum = 0;", "accumulator: double sum = 1;"},
      {"double sum = 0;", "accumulator: static double sum = 0;"},
      {"__m256 s = _mm256_setzero_ps();", "accumulator: __m256 s = _mm256_set1_ps(1);"},
      {"y = 0.5f * a;", "constant: y = 0.25f * a;"},
      {"y = a + 1e-5;", "constant: y = a + 0.001;"},
      {"y = std::sqrt(a);", "constant: y = (a);"},
      {"y = a;", "precision: y = audit_bf16(a);"},
      {"y += a;", "precision: y = audit_bf16(y + (a));"},
      {"const double m = a / b;", "precision: const double m = audit_bf16( a / b);"},
      {"return a;", "precision: return audit_bf16( a);"},
      {"y[i] = double{a[i]} + double{b[i]};", "dropped: ;"},
      {"y[i] = double{a[i]} + double{b[i]};",
       "precision: y[i] = audit_bf16(double{a[i]} + double{b[i]});"},
      {"y[i] = double{a[i]} + double{b[i]};", "operator: y[i] = double{a[i]} - double{b[i]};"},
      {"y[i] = double{a[i]} + double{b[i]};", "dropped: y[i] = double{a[i]} ;"},
      {"if (a) { y -= double{b}; }", "dropped: if (a) { ; }"},
      {"y -= double{b};", "precision: y = audit_bf16(y - (double{b}));"},
      {"y = _mm_cvtss_f32(v);", "precision: y = audit_bf16(_mm_cvtss_f32(v));"},
  };
  for (const Case& one : cases) {
    EXPECT_THAT(Mutants(one.body), Contains(one.mutant)) << one.body;
  }
}

TEST(MutateTest, KeepsWhatIsNoSlip) {
  EXPECT_THAT(Mutants(""), IsEmpty());
  // Pointers, template arguments and unary signs are no operators.
  EXPECT_THAT(Mutants("const float* p = q;"), IsEmpty());
  for (const std::string& mutant : Mutants("y = static_cast<float>(a);")) {
    if (mutant == "dropped: ;") continue;
    EXPECT_THAT(mutant, HasSubstr("static_cast<float>(a)"));
  }
  // No rounding takes a vector.
  for (const char* body : {"s = _mm256_add_ps(a, b);", "return _mm256_add_ps(a, b);"}) {
    EXPECT_THAT(Mutants(body), Each(Not(HasSubstr("precision")))) << body;
  }
  // What follows a braced value is no statement of its own; what follows a block is.
  int deletions = 0;
  for (const Mutation& mutation :
       FindMutations(Wrapped("y = double{a} + b; if (a) { g(); } *y = 1;"), kOptions)) {
    deletions += mutation.is_deletion ? 1 : 0;
  }
  EXPECT_EQ(deletions, 3);
  // A loop whose step is gone may never end.
  for (const std::string& mutant : Mutants("for (long i = 0; i < n; i += 8) g(i);")) {
    EXPECT_THAT(mutant, HasSubstr("i += 8"));
  }
  // Outside of functions nothing is changed.
  EXPECT_THAT(
      FindMutations("#define A (1 + 2)\nconstexpr int kA = 1 + 2;\nstruct S { int a = 1; };",
                    kOptions),
      IsEmpty());
}

TEST(MutateTest, EachMutantDiffersInOnePlaceAndSaysWhere) {
  const std::string source = Wrapped(
      "\n  double sum = 0;\n  for (long i = 0; i < rows; ++i) {\n"
      "    sum += x[i * cols] * 0.5;\n  }\n  y[0] = sum;\n");
  std::set<std::string> texts;
  for (const Mutation& mutation : FindMutations(source, kOptions)) {
    EXPECT_NE(mutation.source, source) << mutation.what;
    EXPECT_TRUE(texts.insert(mutation.source).second) << mutation.what;
    EXPECT_THAT(mutation.what, HasSubstr("line "));
    EXPECT_EQ(mutation.is_deletion, mutation.what.find("is left out") != std::string::npos);
  }
  EXPECT_GT(texts.size(), 15u);
}

TEST(MutateTest, SamplesEvenlyAndTheSameForASeed) {
  std::vector<Mutation> all;
  for (int i = 0; i < 100; ++i) all.push_back({"operator", absl::StrCat("o", i), "", false});
  for (int i = 0; i < 100; ++i) all.push_back({"index", absl::StrCat("i", i), "", false});
  for (int i = 0; i < 3; ++i) all.push_back({"precision", absl::StrCat("p", i), "", false});
  const auto draw = [&](size_t count, uint64_t seed) {
    std::map<std::string, int> families;
    std::string names;
    for (const Mutation& mutation : SampleMutations(all, count, seed)) {
      ++families[mutation.family];
      absl::StrAppend(&names, mutation.what, " ");
    }
    return std::make_pair(families, names);
  };
  EXPECT_EQ(draw(21, 1).first,
            (std::map<std::string, int>{{"operator", 9}, {"index", 9}, {"precision", 3}}));
  EXPECT_EQ(draw(21, 1).second, draw(21, 1).second);
  EXPECT_NE(draw(21, 1).second, draw(21, 2).second);
  EXPECT_EQ(draw(1000, 1).first["operator"], 100);
}

TEST(EncloseTest, TakesIncludesOutAndLinkageAway) {
  const std::string enclosed = Enclose(
      "// c\n#include <cmath>\n#define A 1\nextern \"C\" void f() {}\nextern \"C\" { void g(); }\n",
      "original");
  EXPECT_EQ(enclosed.rfind("#include <cmath>\nnamespace original {", 0), 0u) << enclosed;
  EXPECT_THAT(enclosed, Not(HasSubstr("extern")));
  EXPECT_THAT(enclosed, HasSubstr("#define A 1"));
  EXPECT_THAT(enclosed, HasSubstr("inline namespace audit_c  { void g(); }"));
}

}  // namespace
}  // namespace assay
