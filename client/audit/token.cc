#include "client/audit/token.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "absl/strings/str_cat.h"
#include "base/strings.h"

namespace assay {
namespace {

constexpr std::array<std::string_view, 26> kLong = {
    "<<=", ">>=", "...", "->*", "::", "->", "++", "--", "<<", ">>", "<=", ">=", "==",
    "!=",  "&&",  "||",  "+=",  "-=", "*=", "/=", "%=", "&=", "|=", "^=", "##", ".*"};

bool IsNameChar(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<Token> Run() {
    while (SkipBlanks()) {
      const size_t begin = at_;
      const int line = line_;
      const Token::Kind kind = Take();
      line_start_ = false;
      tokens_.push_back({kind, source_.substr(begin, at_ - begin), begin, line});
    }
    return std::move(tokens_);
  }

 private:
  char Peek(size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }
  void Step() {
    if (at_ >= source_.size()) return;
    if (source_[at_] == '\n') {
      ++line_;
      line_start_ = true;
    }
    ++at_;
  }
  bool StartsWith(std::string_view text) const { return source_.substr(at_, text.size()) == text; }
  void StepOver(std::string_view end) {
    while (at_ < source_.size() && !StartsWith(end)) Step();
    for (size_t i = 0; i < end.size(); ++i) Step();
  }

  // False at the end of the text.
  bool SkipBlanks() {
    while (at_ < source_.size()) {
      if (std::isspace(static_cast<unsigned char>(Peek()))) {
        Step();
      } else if (StartsWith("//")) {
        while (at_ < source_.size() && Peek() != '\n') Step();
      } else if (StartsWith("/*")) {
        at_ += 2;
        StepOver("*/");
      } else {
        return true;
      }
    }
    return false;
  }

  Token::Kind Take() {
    const char c = Peek();
    if (c == '#' && line_start_) return TakeDirective();
    if (StartsWith("R\"")) return TakeRaw();
    if (std::isalpha(static_cast<unsigned char>(c)) || c == '_') {
      while (IsNameChar(Peek())) Step();
      return Token::Kind::kName;
    }
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (digit || (c == '.' && std::isdigit(static_cast<unsigned char>(Peek(1))))) {
      return TakeNumber();
    }
    if (c == '"' || c == '\'') return TakeQuoted(c);
    for (const std::string_view text : kLong) {
      if (!StartsWith(text)) continue;
      at_ += text.size();
      return Token::Kind::kPunctuation;
    }
    Step();
    return Token::Kind::kPunctuation;
  }

  Token::Kind TakeDirective() {
    while (at_ < source_.size() && Peek() != '\n') {
      if (StartsWith("\\\n")) Step();
      Step();
    }
    return Token::Kind::kPreprocessor;
  }
  Token::Kind TakeRaw() {
    const size_t open = source_.find('(', at_);
    if (open == std::string_view::npos) {
      at_ = source_.size();
      return Token::Kind::kText;
    }
    const std::string end = absl::StrCat(")", Av(source_.substr(at_ + 2, open - at_ - 2)), "\"");
    StepOver(end);
    return Token::Kind::kText;
  }
  Token::Kind TakeNumber() {
    char last = '\0';
    while (IsNameChar(Peek()) || Peek() == '.' || Peek() == '\'' ||
           ((Peek() == '+' || Peek() == '-') && (last == 'e' || last == 'E' || last == 'p'))) {
      last = Peek();
      Step();
    }
    return Token::Kind::kNumber;
  }
  Token::Kind TakeQuoted(char quote) {
    Step();
    while (at_ < source_.size() && Peek() != quote && Peek() != '\n') {
      if (Peek() == '\\') Step();
      Step();
    }
    if (Peek() == quote) Step();
    return Token::Kind::kText;
  }

  const std::string_view source_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_start_ = true;  // only blanks since the start of the line
  std::vector<Token> tokens_;
};

bool OpensBody(const std::vector<Token>& tokens, size_t brace) {
  if (brace == 0) return false;
  const Token& before = tokens[brace - 1];
  return before.Is(")") || before.Is("else") || before.Is("do") || before.Is("noexcept") ||
         before.Is("const");
}

// For `<` at `open`: the index of its `>` when the two enclose template arguments, else `open`.
size_t TemplateEnd(const std::vector<Token>& tokens, size_t open) {
  constexpr size_t kArgumentsMax = 24;  // tokens; longer lists do not occur
  if (open == 0 || !(tokens[open - 1].IsName())) return open;
  int depth = 1;
  for (size_t i = open + 1; i < tokens.size() && i < open + kArgumentsMax; ++i) {
    const Token& token = tokens[i];
    if (token.Is("<")) ++depth;
    if (token.Is(">")) --depth;
    if (token.Is(">>")) depth -= 2;
    const bool plain = token.IsName() || token.IsNumber() || token.Is("::") || token.Is("*") ||
                       token.Is("&") || token.Is(",") || token.Is("<") || token.Is(">") ||
                       token.Is(">>") || token.Is("[") || token.Is("]");
    if (!plain) return open;
    if (depth > 0) continue;
    const bool number_after = i + 1 < tokens.size() && tokens[i + 1].IsNumber();
    return number_after ? open : i;
  }
  return open;
}

}  // namespace

std::vector<Token> Tokenize(std::string_view source) { return Lexer(source).Run(); }

std::vector<Place> FindPlaces(const std::vector<Token>& tokens) {
  struct Open {
    size_t index;
    bool body;       // of braces
    bool subscript;  // of brackets
    int clause;      // of a `for`, else 0
  };
  std::vector<Place> places(tokens.size());
  std::vector<Open> open;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const Token& token = tokens[i];
    const bool closes = token.Is(")") || token.Is("]") || token.Is("}");
    places[i].match = i;
    if (closes && !open.empty()) {
      places[i].match = open.back().index;
      places[open.back().index].match = i;
      open.pop_back();
    }
    for (const Open& one : open) {
      places[i].in_body |= one.body;
      places[i].in_subscript |= one.subscript;
    }
    if (!open.empty()) places[i].for_clause = open.back().clause;
    // A parenthesis within a clause belongs to that clause.
    for (const Open& one : open) places[i].for_clause = std::max(places[i].for_clause, one.clause);
    if (!open.empty() && open.back().clause > 0 && token.Is(";")) ++open.back().clause;
    if (token.Is("{")) {
      open.push_back({i, places[i].in_body || OpensBody(tokens, i), false, 0});
    } else if (token.Is("(")) {
      open.push_back({i, false, false, i > 0 && tokens[i - 1].Is("for") ? 1 : 0});
    } else if (token.Is("[")) {
      const bool subscript =
          i > 0 && (tokens[i - 1].IsName() || tokens[i - 1].Is("]") || tokens[i - 1].Is(")"));
      open.push_back({i, false, subscript, 0});
    }
    if (token.Is("<") && !places[i].is_template) {
      const size_t end = TemplateEnd(tokens, i);
      if (end != i) places[i].is_template = places[end].is_template = true;
    }
  }
  return places;
}

}  // namespace assay
