#include "client/audit/mutate.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/strings.h"
#include "client/audit/token.h"

namespace assay {

const char kRoundingHelpers[] = R"(#include <cmath>
#include <type_traits>
namespace {
template <class T> T audit_significant(T v, int bits) {
  static_assert(std::is_floating_point_v<T>, "rounding is for floating point");
  if (!std::isfinite(v) || v == 0) return v;
  int exponent;
  const T part = std::frexp(v, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(part, bits)), exponent - bits);
}
template <class T> T audit_f32(T v) { return static_cast<float>(v); }
template <class T> T audit_tf32(T v) { return audit_significant(v, 11); }
template <class T> T audit_bf16(T v) { return audit_significant(v, 8); }
template <class T> T audit_f16(T v) {
  v = std::fabs(v) < T(6.103515625e-05) ? std::nearbyint(v * T(16777216)) / T(16777216)
                                         : audit_significant(v, 11);
  return std::fabs(v) > T(65504) ? std::copysign(T(INFINITY), v) : v;
}
}  // namespace
)";

namespace {

const std::set<std::string_view>& Types() {
  static const auto* types =
      new std::set<std::string_view>{"float", "double", "int",  "char",  "bool",     "auto",
                                     "void",  "const",  "long", "short", "unsigned", "size_t"};
  return *types;
}
bool IsType(const Token& token) {
  return Types().contains(token.text) || absl::EndsWith(Av(token.text), "_t") ||
         absl::StartsWith(Av(token.text), "__m");
}
bool IsKeyword(const Token& token) {
  static const auto* words = new std::set<std::string_view>{
      "return",        "if",        "else",   "for",    "while",   "do",        "case",
      "break",         "continue",  "switch", "using",  "static",  "constexpr", "struct",
      "template",      "namespace", "goto",   "sizeof", "alignas", "typedef",   "asm",
      "static_assert", "alignof",   "new",    "delete"};
  return words->contains(token.text);
}

// What becomes of operators and functions.
struct Exchange {
  const char* from;
  const char* to;
  const char* family;
};
constexpr Exchange kOperators[] = {
    {"+", "-", "operator"},    {"-", "+", "operator"},   {"*", "/", "operator"},
    {"/", "*", "operator"},    {"%", "/", "operator"},   {"<", ">", "operator"},
    {">", "<", "operator"},    {"==", "!=", "operator"}, {"!=", "==", "operator"},
    {"&&", "||", "operator"},  {"||", "&&", "operator"}, {"<<", ">>", "operator"},
    {">>", "<<", "operator"},  {"&", "|", "operator"},   {"^", "|", "operator"},
    {"+=", "-=", "operator"},  {"-=", "+=", "operator"}, {"*=", "/=", "operator"},
    {"/=", "*=", "operator"},  {"<", "<=", "boundary"},  {"<=", "<", "boundary"},
    {">", ">=", "boundary"},   {">=", ">", "boundary"},  {"+=", "=", "accumulator"},
    {"*=", "=", "accumulator"}};
constexpr Exchange kFunctions[] = {{"max", "min", "operator"},
                                   {"min", "max", "operator"},
                                   {"max_element", "min_element", "operator"},
                                   {"sqrt", "", "constant"},
                                   {"exp", "", "constant"},
                                   {"tanh", "", "constant"},
                                   {"erf", "", "constant"},
                                   {"erfc", "", "constant"},
                                   {"fabs", "", "constant"},
                                   {"abs", "", "constant"}};
// Parts of the names of vector functions: _mm256_add_ps and the like.
constexpr Exchange kVectorFunctions[] = {
    {"_add_", "_sub_", "operator"},        {"_sub_", "_add_", "operator"},
    {"_mul_", "_add_", "operator"},        {"_max_", "_min_", "operator"},
    {"_min_", "_max_", "operator"},        {"_fmadd_", "_fmsub_", "operator"},
    {"_fmadd_", "_fnmadd_", "operator"},   {"_and_", "_or_", "operator"},
    {"_cvtepu8_", "_cvtepi8_", "operator"}};

class Finder {
 public:
  Finder(std::string_view source, const MutateOptions& options)
      : source_(source),
        options_(options),
        tokens_(Tokenize(source)),
        places_(FindPlaces(tokens_)) {}

  std::vector<Mutation> Run() {
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (!places_[i].in_body || tokens_[i].kind == Token::Kind::kPreprocessor) continue;
      Operator(i);
      Call(i);
      Number(i);
      Loop(i);
      Condition(i);
      Subscript(i);
      Advance(i);
      Initial(i);
      if (StartsStatement(i)) Statement(i);
    }
    return std::move(found_);
  }

 private:
  struct Edit {
    size_t begin;
    size_t end;
    std::string text;
  };

  const Token& At(size_t i) const { return i < tokens_.size() ? tokens_[i] : end_; }
  std::string Text(size_t first, size_t last) const {  // both included
    return std::string(
        source_.substr(tokens_[first].begin, tokens_[last].end() - tokens_[first].begin));
  }

  // Edits in ascending order.
  void Add(const char* family, size_t token, std::string what, const std::vector<Edit>& edits,
           bool is_deletion = false) {
    std::string text;
    size_t at = 0;
    for (const Edit& edit : edits) {
      absl::StrAppend(&text, Av(source_.substr(at, edit.begin - at)), edit.text);
      at = edit.end;
    }
    absl::StrAppend(&text, Av(source_.substr(at)));
    found_.push_back({family, absl::StrCat("line ", tokens_[token].line, ": ", what),
                      std::move(text), is_deletion});
  }
  void Replace(const char* family, size_t first, size_t last, std::string text) {
    std::string old = Text(first, last);
    if (old.size() > 60) old = old.substr(0, 57) + "...";
    std::replace(old.begin(), old.end(), '\n', ' ');
    Add(family, first, absl::StrCat("`", old, "` becomes `", text, "`"),
        {{tokens_[first].begin, tokens_[last].end(), text}});
  }

  bool EndsOperand(size_t i) const {
    const Token& token = tokens_[i];
    if (token.IsName()) return !IsKeyword(token) && !IsType(token);
    return token.IsNumber() || token.Is(")") || token.Is("]") || ClosesExpression(i);
  }
  // The `}` of `double{x}`, which ends no block.
  bool ClosesExpression(size_t i) const {
    if (!tokens_[i].Is("}") || places_[i].match >= i || places_[i].match == 0) return false;
    const size_t before = places_[i].match - 1;
    const Token& token = tokens_[before];
    if (token.Is("else") || token.Is("do")) return false;
    return token.IsName() || token.Is("=") || token.Is(",") || token.Is("(") ||
           (token.Is(">") && places_[before].is_template);
  }
  bool IsBinary(size_t i) const {
    if (i == 0 || places_[i].is_template || !EndsOperand(i - 1)) return false;
    const Token& next = At(i + 1);
    return !next.Is(")") && !next.Is(",") && !next.Is(";") && !next.Is("=") && !next.Is(">");
  }
  // The last token of the operand that starts at `i`, or `i - 1` when none does.
  size_t OperandEnd(size_t i) const {
    const size_t none = i - 1;
    if (At(i).Is("-")) ++i;
    if (At(i).Is("(")) {
      if (places_[i].match == i) return none;
      i = places_[i].match;
    } else if (!At(i).IsNumber() && !(At(i).IsName() && !IsKeyword(At(i)))) {
      return none;
    }
    for (;;) {
      const Token& next = At(i + 1);
      if ((next.Is("(") || next.Is("[") || next.Is("{")) && places_[i + 1].match > i) {
        i = places_[i + 1].match;
      } else if ((next.Is("::") || next.Is(".") || next.Is("->")) && At(i + 2).IsName()) {
        i += 2;
      } else if (next.Is("<") && places_[i + 1].is_template) {
        do {
          ++i;
        } while (i + 1 < tokens_.size() && !(tokens_[i].Is(">") && places_[i].is_template));
      } else {
        return i;
      }
    }
  }

  void Operator(size_t i) {
    if (tokens_[i].kind != Token::Kind::kPunctuation || !IsBinary(i)) return;
    // The step of a loop stays: without it the loop may never end.
    if (places_[i].for_clause == 1 || places_[i].for_clause == 3) return;
    for (const Exchange& exchange : kOperators) {
      if (!tokens_[i].Is(exchange.from)) continue;
      const bool arithmetic = tokens_[i].Is("+") || tokens_[i].Is("-") || tokens_[i].Is("*");
      Replace(places_[i].in_subscript && arithmetic ? "index" : exchange.family, i, i, exchange.to);
    }
    if (places_[i].for_clause != 0) return;
    const bool term = tokens_[i].Is("+") || tokens_[i].Is("-");
    const bool factor = tokens_[i].Is("*") || tokens_[i].Is("/");
    if (!term && !factor) return;
    size_t last = OperandEnd(i + 1);
    // The whole of a product, when a term is dropped.
    while (term && last > i && (At(last + 1).Is("*") || At(last + 1).Is("/"))) {
      const size_t next = OperandEnd(last + 2);
      if (next < last + 2) break;
      last = next;
    }
    if (last > i) Replace(places_[i].in_subscript ? "index" : "dropped", i, last, "");
  }

  void Call(size_t i) {
    if (!tokens_[i].IsName()) return;
    if (At(i + 1).Is("(")) {
      for (const Exchange& exchange : kFunctions) {
        if (!tokens_[i].Is(exchange.from)) continue;
        const bool qualified = i >= 2 && tokens_[i - 1].Is("::") && tokens_[i - 2].Is("std");
        if (*exchange.to != '\0') {
          Replace(exchange.family, i, i, exchange.to);
        } else {
          Replace(exchange.family, qualified ? i - 2 : i, i, "");
        }
      }
    }
    if (!absl::StartsWith(Av(tokens_[i].text), "_mm")) return;
    const std::string name(tokens_[i].text);
    for (const Exchange& exchange : kVectorFunctions) {
      const size_t at = name.find(exchange.from);
      if (at == std::string::npos) continue;
      std::string other = name;
      Replace(exchange.family, i, i,
              other.replace(at, std::string_view(exchange.from).size(), exchange.to));
    }
    const size_t zero = name.find("_setzero_p");
    if (zero != std::string::npos && At(i + 1).Is("(") && At(i + 2).Is(")")) {
      std::string other = name;
      Replace("accumulator", i, i + 2, other.replace(zero, 9, "_set1_") + "(1)");
    }
  }

  void Number(size_t i) {
    if (!tokens_[i].IsNumber() || places_[i].for_clause != 0) return;
    std::string digits(tokens_[i].text);
    if (absl::StartsWith(digits, "0x")) return;
    const bool floating = digits.find_first_of(".eE") != std::string::npos;
    std::string suffix;
    while (!digits.empty() && std::isalpha(static_cast<unsigned char>(digits.back()))) {
      suffix.insert(suffix.begin(), digits.back());
      digits.pop_back();
    }
    double value = 0;
    if (!absl::SimpleAtod(digits, &value)) return;
    if (floating && value != 0) {
      // An epsilon that is taken a hundred times larger, a factor that is off by two.
      const double other = value < 1e-3 ? value * 100 : value / 2;
      Replace("constant", i, i,
              absl::StrCat(absl::SixDigits(other), other == int64_t(other) ? ".0" : "", suffix));
      if (value < 1e-3) Replace("constant", i, i, absl::StrCat("0.0", suffix));
    } else if (!floating && value >= 1 && !places_[i].in_subscript && i > 0 &&
               !tokens_[i - 1].Is("[")) {
      Replace("constant", i, i, absl::StrCat(static_cast<int64_t>(value) + 1, suffix));
    }
  }

  // Starts and ends of loops.
  void Loop(size_t i) {
    const int clause = places_[i].for_clause;
    const Token& token = tokens_[i];
    if (clause == 1 && token.Is("=") && At(i + 1).Is("0")) Replace("boundary", i + 1, i + 1, "1");
    if (clause == 2 && token.Is(";")) {
      bool simple = false;
      for (size_t j = i; j > 0 && !tokens_[j - 1].Is(";"); --j) {
        simple |= tokens_[j - 1].Is("<") || tokens_[j - 1].Is("<=");
        if (tokens_[j - 1].Is("&&") || tokens_[j - 1].Is("?")) return;
      }
      if (simple) Replace("boundary", i, i, " - 1;");
    }
    if (clause == 3 && token.Is("++") && At(i + 1).IsName()) {
      Replace("boundary", i, i + 1, absl::StrCat(Av(tokens_[i + 1].text), " += 2"));
    }
    // for (; i < n; ++i): the rest that blocks leave over.
    if (token.Is("for") && At(i + 1).Is("(") && At(i + 2).Is(";")) {
      Add("boundary", i, "the loop over what is left is skipped",
          {{tokens_[i + 2].end(), tokens_[i + 2].end(), " false &&"}});
    }
  }

  void Condition(size_t i) {
    if (!tokens_[i].Is("if") || !At(i + 1).Is("(") || places_[i + 1].match <= i + 1) return;
    for (const char* text : {"false && (", "true || ("}) {
      const size_t close = places_[i + 1].match;
      Add("dropped", i, absl::StrCat("the condition is always ", text[0] == 'f' ? "false" : "true"),
          {{tokens_[i + 1].end(), tokens_[i + 1].end(), text},
           {tokens_[close].begin, tokens_[close].begin, ")"}});
    }
  }

  void Subscript(size_t i) {
    if (!tokens_[i].Is("[") || places_[i].match <= i + 1) return;
    if (i == 0 || !(EndsOperand(i - 1))) return;
    const size_t close = places_[i].match;
    // Declarations of arrays: their size is no index.
    if (i >= 2 && IsType(tokens_[i - 2])) return;
    Add("index", i, absl::StrCat("`", Text(i - 1, close), "` is one further"),
        {{tokens_[i].end(), tokens_[i].end(), "("},
         {tokens_[close].begin, tokens_[close].begin, ") + 1"}});
    // Two names change places: a transposed access.
    std::vector<size_t> names;
    for (size_t j = i + 1; j < close; ++j) {
      if (tokens_[j].IsName() && !At(j + 1).Is("(") && !At(j + 1).Is("[") && !At(j + 1).Is("::")) {
        names.push_back(j);
      }
    }
    std::set<std::string> done;
    for (size_t a = 0; a < names.size(); ++a) {
      for (size_t b = a + 1; b < names.size(); ++b) {
        const Token& one = tokens_[names[a]];
        const Token& other = tokens_[names[b]];
        if (one.text == other.text ||
            !done.insert(absl::StrCat(Av(one.text), ",", Av(other.text))).second) {
          continue;
        }
        Add("index", i,
            absl::StrCat("`", Av(one.text), "` and `", Av(other.text), "` change places"),
            {{one.begin, one.end(), std::string(other.text)},
             {other.begin, other.end(), std::string(one.text)}});
      }
      WrongAxis(names[a]);
    }
  }

  void WrongAxis(size_t i) {
    const auto& axes = options_.axes;
    const auto found = std::find(axes.begin(), axes.end(), tokens_[i].text);
    if (found == axes.end() || axes.size() < 2) return;
    const size_t next = static_cast<size_t>(found - axes.begin() + 1) % axes.size();
    Replace("index", i, i, axes[next]);
  }

  // x += cols: the stride of a pointer.
  void Advance(size_t i) {
    if (tokens_[i].Is("+=") && At(i + 1).IsName() &&
        (At(i + 2).Is(")") || At(i + 2).Is(",") || At(i + 2).Is(";"))) {
      WrongAxis(i + 1);
    }
  }

  void Initial(size_t i) {
    // double sum = 0;
    const bool declares = IsType(tokens_[i]) && At(i + 1).IsName() && At(i + 2).Is("=");
    if (!declares || places_[i].for_clause != 0 || places_[i].in_subscript) return;
    if (i > 0 && (tokens_[i - 1].Is("const") || tokens_[i - 1].Is("constexpr"))) return;
    double value = 1;
    std::string digits(At(i + 3).text);
    if (absl::EndsWith(digits, "f")) digits.pop_back();
    if (At(i + 3).IsNumber() && absl::SimpleAtod(digits, &value) && value == 0 &&
        (At(i + 4).Is(";") || At(i + 4).Is(","))) {
      Replace("accumulator", i + 3, i + 3, "1");
      Add("accumulator", i, absl::StrCat("`", Av(tokens_[i + 1].text), "` is never reset"),
          {{tokens_[i].begin, tokens_[i].begin, "static "}});
    }
    if (At(i + 3).Is("-") && At(i + 4).IsName())
      Replace("accumulator", i + 3, OperandEnd(i + 3), "0");
  }

  bool StartsStatement(size_t i) const {
    if (i == 0 || places_[i].for_clause != 0) return false;
    const Token& before = tokens_[i - 1];
    if (ClosesExpression(i - 1)) return false;
    if (before.Is(";") || before.Is("{") || before.Is("}") || before.Is("else")) return true;
    // The body of `for (...)` or `if (...)` without braces.
    if (!before.Is(")") || places_[i - 1].match == 0 || places_[i - 1].match == i - 1) return false;
    const Token& head = tokens_[places_[i - 1].match - 1];
    return head.Is("for") || head.Is("if") || head.Is("while");
  }

  // An expression statement from `i` to its semicolon.
  void Statement(size_t i) {
    if (tokens_[i].Is("return")) return Return(i);
    if (tokens_[i].Is("continue")) return Replace("dropped", i, i, "");
    if (IsKeyword(tokens_[i]) || IsType(tokens_[i]) || tokens_[i].Is("}") || tokens_[i].Is("{")) {
      return Declaration(i);
    }
    size_t end = i;
    size_t assign = 0;
    while (end < tokens_.size() && !tokens_[end].Is(";")) {
      const Token& token = tokens_[end];
      // What is assigned may hold braces: `y = double{x};`.
      if (token.Is("}") || (token.Is("{") && (assign == 0 || places_[end].match <= end))) return;
      const bool assigns =
          token.Is("=") || token.Is("+=") || token.Is("-=") || token.Is("*=") || token.Is("/=");
      if (assign == 0 && assigns) assign = end;
      const bool bracket = token.Is("(") || token.Is("[") || token.Is("{");
      end = bracket && places_[end].match > end ? places_[end].match + 1 : end + 1;
    }
    if (end >= tokens_.size() || end == i) return;
    // `Type name = ...` and `Type name(...)` declare: what follows would not compile.
    if (At(i + 1).IsName() && !tokens_[i].Is("*")) return Declaration(i);
    std::string old = Text(i, end);
    if (old.size() > 60) old = old.substr(0, 57) + "...";
    std::replace(old.begin(), old.end(), '\n', ' ');
    Add("dropped", i, absl::StrCat("`", old, "` is left out"),
        {{tokens_[i].begin, tokens_[end].begin, ""}}, /*is_deletion=*/true);
    if (assign > i) RoundAssignment(i, assign, end);
  }

  // A value that no rounding takes: a vector, unless one element of it is taken out.
  static bool IsVector(const std::string& text) {
    return absl::StrContains(text, "_mm") && !absl::StrContains(text, "_cvtss_f32") &&
           !absl::StrContains(text, "_cvtsd_f64");
  }

  // `rounding(value)` in place of what is assigned.
  void RoundAssignment(size_t first, size_t assign, size_t end) {
    for (const std::string& rounding : options_.roundings) {
      const std::string left = Text(first, assign - 1);
      const std::string operation(tokens_[assign].text.substr(0, tokens_[assign].text.size() - 1));
      if (left.find("++") != std::string::npos) return;
      const std::string right = Text(assign + 1, end - 1);
      if (IsVector(right)) return;
      const std::string value =
          operation.empty() ? right : absl::StrCat(left, " ", operation, " (", right, ")");
      Add("precision", assign, absl::StrCat("what `", left, "` gets passes through ", rounding),
          {{tokens_[assign].begin, tokens_[end].begin,
            absl::StrCat("= ", rounding, "(", value, ")")}});
    }
  }
  void Declaration(size_t i) {
    size_t assign = 0;
    size_t end = i;
    while (end < tokens_.size() && !tokens_[end].Is(";")) {
      if (tokens_[end].Is("{") || tokens_[end].Is("(") || tokens_[end].Is("[")) {
        if (assign == 0 || places_[end].match <= end) return;
        end = places_[end].match;
      }
      if (tokens_[end].Is(",") || tokens_[end].Is("}")) return;
      if (assign == 0 && tokens_[end].Is("=")) assign = end;
      ++end;
    }
    if (assign < i + 2 || end >= tokens_.size() || end < assign + 3) return;
    const Token& type = tokens_[assign - 2];
    if (!type.Is("float") && !type.Is("double")) return;
    for (const std::string& rounding : options_.roundings) {
      Add("precision", assign,
          absl::StrCat("`", Av(tokens_[assign - 1].text), "` passes through ", rounding),
          {{tokens_[assign].end(), tokens_[assign].end(), absl::StrCat(" ", rounding, "(")},
           {tokens_[end].begin, tokens_[end].begin, ")"}});
    }
  }
  void Return(size_t i) {
    size_t end = i + 1;
    while (end < tokens_.size() && !tokens_[end].Is(";")) ++end;
    if (end >= tokens_.size() || end == i + 1 || IsVector(Text(i + 1, end - 1))) return;
    for (const std::string& rounding : options_.roundings) {
      Add("precision", i, absl::StrCat("the result passes through ", rounding),
          {{tokens_[i].end(), tokens_[i].end(), absl::StrCat(" ", rounding, "(")},
           {tokens_[end].begin, tokens_[end].begin, ")"}});
    }
  }

  const std::string_view source_;
  const MutateOptions& options_;
  const std::vector<Token> tokens_;
  const std::vector<Place> places_;
  const Token end_;
  std::vector<Mutation> found_;
};

// SplitMix64, so that a seed draws the same on every machine.
uint64_t NextRandom(uint64_t* state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace

std::vector<Mutation> FindMutations(std::string_view source, const MutateOptions& options) {
  return Finder(source, options).Run();
}

std::vector<Mutation> SampleMutations(std::vector<Mutation> mutations, size_t count_max,
                                      uint64_t seed) {
  std::map<std::string, std::vector<Mutation>> by_family;
  for (Mutation& mutation : mutations) {
    std::vector<Mutation>& family = by_family[mutation.family];
    family.push_back(std::move(mutation));
  }
  for (auto& [name, family] : by_family) {
    for (size_t i = family.size(); i > 1; --i) {
      std::swap(family[i - 1], family[NextRandom(&seed) % i]);
    }
  }
  // Turn by turn one of each family, so that a family with few leaves its share to the others.
  std::map<std::string, size_t> taken;
  size_t count = 0;
  for (bool more = true; more && count < count_max;) {
    more = false;
    for (const char* name : kMutantFamilies) {
      if (count == count_max || taken[name] >= by_family[name].size()) continue;
      ++taken[name];
      ++count;
      more = true;
    }
  }
  std::vector<Mutation> drawn;
  for (const char* name : kMutantFamilies) {
    for (size_t i = 0; i < taken[name]; ++i) drawn.push_back(std::move(by_family[name][i]));
  }
  return drawn;
}

std::string Enclose(std::string_view source, std::string_view name_space) {
  const std::vector<Token> tokens = Tokenize(source);
  std::string includes;
  std::string body;
  size_t at = 0;
  const auto skip = [&](size_t begin, size_t end) {
    absl::StrAppend(&body, Av(source.substr(at, begin - at)));
    at = end;
  };
  for (size_t i = 0; i < tokens.size(); ++i) {
    const Token& token = tokens[i];
    const bool include = token.kind == Token::Kind::kPreprocessor &&
                         token.text.find("include") != std::string_view::npos;
    if (include) {
      absl::StrAppend(&includes, Av(token.text), "\n");
      skip(token.begin, token.end());
    } else if (token.Is("extern") && i + 1 < tokens.size() && tokens[i + 1].Is("\"C\"")) {
      skip(token.begin, tokens[i + 1].end());
      if (i + 2 < tokens.size() && tokens[i + 2].Is("{")) body += "inline namespace audit_c ";
    }
  }
  skip(source.size(), source.size());
  return absl::StrCat(includes, "namespace ", Av(name_space), " {\n", body, "\n}  // namespace ",
                      Av(name_space), "\n");
}

}  // namespace assay
