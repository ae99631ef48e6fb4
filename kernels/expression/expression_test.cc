#include "kernels/expression/expression.h"

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "base/random.h"
#include "base/test_matchers.h"
#include "gtest/gtest.h"

namespace assay {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

TEST(ExpressionTest, Values) {
  const ValueMap values = {{"n", 1000}, {"BLOCK", 128}, {"zero", 0}, {"low", kMin}, {"big", kMax}};
  const struct {
    const char* text;
    int64_t want;
  } cases[] = {
      {"1", 1},
      {"1+2*3", 7},
      {"(1+2)*3", 9},
      {"10-4-3", 3},
      {"100/10/5", 2},
      {"-7/2", -3},
      {"-7%2", -1},
      {"- - 3", 3},
      {"2--3", 5},
      {"ceil_div(n, BLOCK)", 8},
      {"ceil_div(-7, 2)", -3},
      {"ceil_div(8, 2)", 4},
      {"ceil_div(0, 5)", 0},
      {"ceil_div(big, 1)", kMax},
      {"min(3, 1, 2)", 1},
      {"max(3, 1, 2) + min(n, 4)", 7},
      {"1 < 2", 1},
      {"2 <= 1", 0},
      {"1 == 1 && 2 != 3", 1},
      {"1 || 1 / zero", 1},
      {"0 && 1 / zero", 0},
      {"5 || 0", 1},
      {"5 && 7", 1},
      {"0 || 0", 0},
      {"3 && 0", 0},
      {"!5", 0},
      {"!0", 1},
      {"!!7", 1},
      {"zero ? 1 / zero : 7", 7},
      {"n > 10 ? n : 10", 1000},
      {"0 ? 1 : 0 ? 2 : 3", 3},
      {"1 ? 0 ? 4 : 5 : 6", 5},
      {"1 + 1 == 2 ? 8 : 9", 8},
      {"1 || 0 && 0", 1},
      {"2 * n % 7", 5},
      {"low", kMin},
      {"low + big", -1},
      {"-big - 1", kMin},
      {"low / 1", kMin},
      {"0", 0},
      {"9223372036854775807", kMax},
      {" \t\n4 ", 4},
  };
  for (const auto& c : cases) {
    const auto got = EvaluateExpression(c.text, values);
    ASSERT_THAT(got, IsOk()) << c.text;
    EXPECT_EQ(*got, c.want) << c.text;
  }
}

TEST(ExpressionTest, EvaluationErrors) {
  const ValueMap values = {{"n", 3}, {"zero", 0}, {"low", kMin}, {"big", kMax}};
  const struct {
    const char* text;
    absl::StatusCode code;
  } cases[] = {
      {"big + 1", absl::StatusCode::kOutOfRange},
      {"low - 1", absl::StatusCode::kOutOfRange},
      {"-low", absl::StatusCode::kOutOfRange},
      {"big * 2", absl::StatusCode::kOutOfRange},
      {"low / -1", absl::StatusCode::kOutOfRange},
      {"low % -1", absl::StatusCode::kOutOfRange},
      {"n / zero", absl::StatusCode::kOutOfRange},
      {"n % zero", absl::StatusCode::kOutOfRange},
      {"ceil_div(n, zero)", absl::StatusCode::kOutOfRange},
      {"ceil_div(n, -1)", absl::StatusCode::kOutOfRange},
      {"unknown", absl::StatusCode::kInvalidArgument},
      {"1 || unknown", absl::StatusCode::kInvalidArgument},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(EvaluateExpression(c.text, values), StatusIs(c.code)) << c.text;
  }
  EXPECT_THAT(EvaluateExpression("n + unknown", values),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'unknown'")));
}

TEST(ExpressionTest, ParseErrorsNameTheColumn) {
  const struct {
    std::string text;
    const char* message;
  } cases[] = {
      {"", "column 1: expected a number"},
      {"  ", "column 3"},
      {"1 +", "column 4: expected a number, a name or '(', but the expression ends"},
      {"1 2", "column 3: expected an operator or the end, but found 2"},
      {"(1", "column 3: expected ')'"},
      {"1 << 3", "column 4"},
      {"a = b", "column 3"},
      {"a & b", "column 3"},
      {"a ? b", "column 6: expected ':'"},
      {"min(1)", "another argument"},
      {"ceil_div(1, 2, 3)", "expected ')'"},
      {"f(1)", "functions"},
      {"min", "expected '('"},
      {"9223372036854775808", "larger than 2^63 - 1"},
      {"010", "leading zeros"},
      {"1n", "column 2"},
      {"0x10", "column 2"},
      {"1e", "column 2"},
      {"1end", "column 2"},
      {"1.5", "column 1: whole numbers only, but found 1.5"},
      {"2 * .5f", "column 5: whole numbers only, but found .5f"},
      {"n + 1e-5", "column 5: whole numbers only, but found 1e-5"},
      {"1E6", "column 1: whole numbers only, but found 1E6"},
      {"1.", "column 1: whole numbers only"},
      {".", "column 1: expected a number"},
      {"\"x\"", "column 1"},
      {std::string("1\0", 2), "column 2"},
      {"\xff\xfe", "column 1"},
      {std::string(65, 'a'), "65 bytes"},
      {std::string(limits::kExpressionBytesMax + 1, '1'), "4097 bytes"},
      {std::string(1000, '(') + "1", "nested deeper"},
      {std::string(1000, '-') + "1", "nested deeper"},
      {std::string(1000, '!') + "1", "nested deeper"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(Expression::Parse(c.text),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.message)))
        << c.text;
  }
}

TEST(ExpressionTest, DepthLimitIsSharp) {
  // Each parenthesis takes two levels: the conditional and the operand in it.
  const auto nested = [](int depth) {
    return std::string(depth, '(') + "1" + std::string(depth, ')');
  };
  EXPECT_THAT(Expression::Parse(nested(limits::kExpressionDepthMax / 2 - 1)), IsOk());
  EXPECT_THAT(Expression::Parse(nested(limits::kExpressionDepthMax / 2 + 1)),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(ExpressionTest, LongChainsDoNotRecurse) {
  std::string sum = "1";
  while (sum.size() + 2 <= limits::kExpressionBytesMax) sum += "+1";
  ASSERT_OK_AND_ASSIGN(const int64_t value, EvaluateExpression(sum, {}));
  EXPECT_EQ(value, static_cast<int64_t>(sum.size() / 2 + 1));
}

TEST(ExpressionTest, NamesAreSortedAndUnique) {
  ASSERT_OK_AND_ASSIGN(const Expression e, Expression::Parse("z * a + min(z, M) ? b : a"));
  EXPECT_THAT(e.names(), ElementsAre("M", "a", "b", "z"));
  ASSERT_OK_AND_ASSIGN(const int64_t value, e.Evaluate({{"z", 2}, {"a", 3}, {"M", 9}, {"b", 5}}));
  EXPECT_EQ(value, 5);
}

// A generated expression: its text and what it means, computed apart with 128-bit integers.
struct Generated {
  std::string text;
  std::optional<int64_t> value;  // none: an error
};

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}
  const ValueMap& values() const { return values_; }

  Generated Make(int depth) {
    if (depth == 0) return Leaf();
    switch (random_.Below(8)) {
      case 0:
        return Leaf();
      case 1:
        return Unary(depth);
      case 2:
        return Conditional(depth);
      case 3:
        return Call(depth);
      default:
        return Binary(depth);
    }
  }

 private:
  Generated Leaf() {
    if (random_.Chance(0.4)) {
      auto it = values_.begin();
      std::advance(it, static_cast<int64_t>(random_.Below(values_.size())));
      return {it->first, it->second};
    }
    const auto value = static_cast<int64_t>(random_.Below(9));
    return {absl::StrCat(value), value};
  }

  static std::optional<int64_t> Narrow(__int128 value) {
    if (value < kMin || value > kMax) return std::nullopt;
    return static_cast<int64_t>(value);
  }

  Generated Unary(int depth) {
    const Generated a = Make(depth - 1);
    if (random_.Chance(0.5)) {
      return {absl::StrCat("!(", a.text, ")"),
              a.value ? std::optional<int64_t>(*a.value == 0) : std::nullopt};
    }
    return {absl::StrCat("-(", a.text, ")"), a.value ? Narrow(-__int128{*a.value}) : std::nullopt};
  }

  Generated Conditional(int depth) {
    const Generated a = Make(depth - 1);
    const Generated b = Make(depth - 1);
    const Generated c = Make(depth - 1);
    Generated out;
    out.text = absl::StrCat("((", a.text, ") ? ", b.text, " : ", c.text, ")");
    if (a.value) out.value = *a.value != 0 ? b.value : c.value;
    return out;
  }

  Generated Call(int depth) {
    const Generated a = Make(depth - 1);
    const Generated b = Make(depth - 1);
    const bool known = a.value && b.value;
    switch (random_.Below(3)) {
      case 0:
        return {absl::StrCat("min(", a.text, ",", b.text, ")"),
                known ? std::optional<int64_t>(std::min(*a.value, *b.value)) : std::nullopt};
      case 1:
        return {absl::StrCat("max(", a.text, " , ", b.text, ")"),
                known ? std::optional<int64_t>(std::max(*a.value, *b.value)) : std::nullopt};
      default: {
        Generated out{absl::StrCat("ceil_div(", a.text, ",", b.text, ")"), std::nullopt};
        if (known && *b.value > 0) {
          const __int128 shifted = __int128{*a.value} + *b.value - 1;
          __int128 quotient = shifted / *b.value;
          if (shifted < 0 && shifted % *b.value != 0) --quotient;  // floor
          out.value = Narrow(quotient);
        }
        return out;
      }
    }
  }

  Generated Binary(int depth) {
    const Generated a = Make(depth - 1);
    const Generated b = Make(depth - 1);
    static constexpr const char* kSymbols[] = {
        "+", "-", "*", "/", "%", "==", "!=", "<", ">", "<=", ">=", "&&", "||"};
    const std::string symbol = kSymbols[random_.Below(std::size(kSymbols))];
    Generated out;
    out.text = absl::StrCat("(", a.text, ") ", symbol, " (", b.text, ")");
    if (depth > 1) out.text = absl::StrCat("(", out.text, ")");
    if (!a.value) return out;
    if (symbol == "&&" && *a.value == 0) return out.value = 0, out;
    if (symbol == "||" && *a.value != 0) return out.value = 1, out;
    if (!b.value) return out;
    out.value = Apply(symbol, *a.value, *b.value);
    return out;
  }

  static std::optional<int64_t> Apply(const std::string& symbol, __int128 a, __int128 b) {
    if (symbol == "+") return Narrow(a + b);
    if (symbol == "-") return Narrow(a - b);
    if (symbol == "*") return Narrow(a * b);
    if (symbol == "==") return a == b;
    if (symbol == "!=") return a != b;
    if (symbol == "<") return a < b;
    if (symbol == ">") return a > b;
    if (symbol == "<=") return a <= b;
    if (symbol == ">=") return a >= b;
    if (symbol == "&&" || symbol == "||") return b != 0;
    if (b == 0) return std::nullopt;
    if (a == kMin && b == -1) return std::nullopt;
    return Narrow(symbol == "/" ? a / b : a % b);
  }

  Random random_;
  const ValueMap values_ = {{"a", 3}, {"b", -5}, {"n", 1 << 20}, {"big", kMax}, {"low", kMin}};
};

TEST(ExpressionTest, AgreesWithASimpleEvaluator) {
  constexpr uint64_t kSeed = 20240607;
  SCOPED_TRACE(absl::StrCat("seed ", kSeed));
  Generator generator(kSeed);
  int errors = 0;
  for (int i = 0; i < 20000; ++i) {
    const Generated want = generator.Make(1 + i % 5);
    const auto got = EvaluateExpression(want.text, generator.values());
    if (want.value) {
      ASSERT_THAT(got, IsOk()) << want.text;
      ASSERT_EQ(*got, *want.value) << want.text;
    } else {
      ASSERT_THAT(got, StatusIs(absl::StatusCode::kOutOfRange)) << want.text;
      ++errors;
    }
  }
  EXPECT_GT(errors, 500);
  EXPECT_LT(errors, 15000);
}

TEST(ExpressionTest, RandomTextNeverCrashes) {
  constexpr uint64_t kSeed = 77;
  SCOPED_TRACE(absl::StrCat("seed ", kSeed));
  Random random(kSeed);
  constexpr char kAlphabet[] = "()+-*/%<>=!&|?:,ab19 0min,max(ceil_div(\xff\0";
  const std::string alphabet(kAlphabet, sizeof(kAlphabet) - 1);
  int parsed = 0;
  for (int i = 0; i < 50000; ++i) {
    std::string text;
    for (uint64_t length = random.Below(24); length > 0; --length) {
      text += alphabet[random.Below(alphabet.size())];
    }
    const auto expression = Expression::Parse(text);
    if (!expression.ok()) {
      ASSERT_THAT(expression, StatusIs(absl::StatusCode::kInvalidArgument)) << text;
      continue;
    }
    ++parsed;
    const auto value = expression->Evaluate({{"a", kMin}, {"b", -1}});
    if (!value.ok()) {
      ASSERT_THAT(value.status().code(),
                  AnyOf(Eq(absl::StatusCode::kOutOfRange), Eq(absl::StatusCode::kInvalidArgument)))
          << text;
    }
  }
  EXPECT_GT(parsed, 100);  // else the alphabet tests nothing
}

}  // namespace
}  // namespace assay
