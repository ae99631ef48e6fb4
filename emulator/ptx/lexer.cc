#include "emulator/ptx/lexer.h"

#include <bit>
#include <charconv>
#include <system_error>

namespace assay::emulator {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsNameStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
}
bool IsNamePart(char c) { return IsNameStart(c) || IsDigit(c); }

// 16 for a character that is no digit.
unsigned DigitValue(char c) {
  if (IsDigit(c)) return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
  return 16;
}

}  // namespace

Token Lexer::Make(Token::Kind kind, size_t length) {
  Token token;
  token.kind = kind;
  token.line = line_;
  token.text = text_.substr(next_, length);
  next_ += length;
  return token;
}

Token Lexer::Fail(size_t length, const char* message) {
  Token token = Make(Token::Kind::kError, length);
  token.message = message;
  return token;
}

void Lexer::SkipLine() {
  const size_t end = text_.find('\n', next_);
  next_ = end == std::string_view::npos ? text_.size() : end;
}

bool Lexer::SkipBlanks(Token* failure) {
  while (next_ < text_.size()) {
    const char c = text_[next_];
    if (c == '\n') {
      ++line_;
      ++next_;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
      ++next_;
    } else if (c == '/' && At(1) == '/') {
      SkipLine();
    } else if (c == '/' && At(1) == '*') {
      const size_t end = text_.find("*/", next_ + 2);
      if (end == std::string_view::npos) {
        *failure = Fail(2, "a comment has no end");
        return false;
      }
      for (; next_ < end + 2; ++next_) line_ += text_[next_] == '\n' ? 1 : 0;
    } else {
      break;
    }
  }
  return true;
}

Token Lexer::Next() {
  Token failure;
  if (!SkipBlanks(&failure)) return failure;
  if (next_ >= text_.size()) return Make(Token::Kind::kEnd, 0);
  const char c = text_[next_];
  if (IsNameStart(c) || (c == '%' && IsNameStart(At(1)))) {
    size_t length = 1;
    while (IsNamePart(At(length))) ++length;
    return Make(Token::Kind::kIdentifier, length);
  }
  if (IsDigit(c)) return Number();
  if (c == '.') return DotWord();
  if (c == '"') return String();
  return Punctuation();
}

Token Lexer::DotWord() {
  size_t length = 1;
  while (IsNamePart(At(length))) ++length;
  if (length == 1) return Fail(1, "a name must follow the dot");
  while (At(length) == ':' && At(length + 1) == ':' && IsNamePart(At(length + 2))) {
    length += 2;
    while (IsNamePart(At(length))) ++length;
  }
  return Make(Token::Kind::kDotWord, length);
}

Token Lexer::String() {
  const size_t begin = next_ + 1;
  for (size_t at = begin; at < text_.size() && text_[at] != '\n'; ++at) {
    if (text_[at] == '\\') {
      ++at;
      if (at < text_.size() && text_[at] == '\n') break;
    } else if (text_[at] == '"') {
      Token token = Make(Token::Kind::kString, at + 1 - next_);
      token.text = text_.substr(begin, at - begin);
      return token;
    }
  }
  return Fail(1, "a string does not end on its line");
}

Token Lexer::Punctuation() {
  static constexpr std::string_view kPairs[] = {"<<", ">>", "<=", ">=", "==", "!=", "&&", "||"};
  static constexpr std::string_view kSingles = "{}[]()<>,;:@!|=+-*/%&^~?";
  const std::string_view pair = text_.substr(next_, 2);
  for (const std::string_view symbol : kPairs) {
    if (pair == symbol) return Make(Token::Kind::kPunctuation, 2);
  }
  if (kSingles.find(text_[next_]) != std::string_view::npos) {
    return Make(Token::Kind::kPunctuation, 1);
  }
  return Fail(1, "a character that PTX does not use");
}

Token Lexer::Number() {
  if (At(0) == '0') {
    switch (At(1)) {
      case 'f':
      case 'F':
      case 'd':
      case 'D':
        return HexFloat();
      case 'x':
      case 'X':
        return Integer(2, 16);
      case 'b':
      case 'B':
        return Integer(2, 2);
      default:
        break;
    }
  }
  size_t length = 0;
  while (IsDigit(At(length))) ++length;
  const bool has_point = At(length) == '.';
  const bool has_exponent = At(length) == 'e' || At(length) == 'E';
  if (has_point || has_exponent) return DecimalFloat(length);
  const bool is_octal = At(0) == '0' && length > 1;
  return Integer(is_octal ? 1 : 0, is_octal ? 8 : 10);
}

Token Lexer::HexFloat() {
  const bool single = At(1) == 'f' || At(1) == 'F';
  size_t length = 2;
  uint64_t bits = 0;
  while (length < 18 && DigitValue(At(length)) < 16) bits = bits << 4 | DigitValue(At(length++));
  if (length != (single ? 10u : 18u) || IsNamePart(At(length))) {
    return Fail(length, "0f takes 8 and 0d takes 16 hexadecimal digits");
  }
  Token token = Make(Token::Kind::kFloat, length);
  token.single = single;
  token.bits = bits;
  return token;
}

Token Lexer::Integer(size_t prefix, unsigned base) {
  size_t length = prefix;
  uint64_t bits = 0;
  for (unsigned digit = DigitValue(At(length)); digit < base; digit = DigitValue(At(++length))) {
    if (bits > (UINT64_MAX - digit) / base) return Fail(length, "an integer has more than 64 bits");
    bits = bits * base + digit;
  }
  const bool has_digits = length > prefix;
  const bool has_suffix = At(length) == 'U' || At(length) == 'u';
  if (has_suffix) ++length;
  if (!has_digits || IsNamePart(At(length))) return Fail(length, "a malformed integer");
  Token token = Make(Token::Kind::kInteger, length);
  token.bits = bits;
  token.is_unsigned = has_suffix || bits > static_cast<uint64_t>(INT64_MAX);
  return token;
}

Token Lexer::DecimalFloat(size_t length) {
  if (At(length) == '.') {
    ++length;
    while (IsDigit(At(length))) ++length;
  }
  if (At(length) == 'e' || At(length) == 'E') {
    ++length;
    if (At(length) == '+' || At(length) == '-') ++length;
    while (IsDigit(At(length))) ++length;
  }
  const std::string_view digits = text_.substr(next_, length);
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (end != digits.data() + digits.size() || IsNamePart(At(length))) {
    return Fail(length, "a malformed floating-point number");
  }
  if (error == std::errc::result_out_of_range) {
    return Fail(length, "a floating-point number is out of the range of a double");
  }
  Token token = Make(Token::Kind::kFloat, length);
  token.bits = std::bit_cast<uint64_t>(value);
  return token;
}

}  // namespace assay::emulator
