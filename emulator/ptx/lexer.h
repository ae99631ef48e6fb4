// Splits PTX into tokens.
//
// Plain values that view the text, which must outlive them. Linear in the text: no token is looked
// at twice but by a copy of the lexer. Not thread-safe.
#ifndef ASSAY_EMULATOR_PTX_LEXER_H_
#define ASSAY_EMULATOR_PTX_LEXER_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace assay::emulator {

struct Token {
  enum class Kind : uint8_t {
    kEnd,
    kError,        // message says why
    kIdentifier,   // add, %r1, $L__BB0_1, _
    kDotWord,      // .reg, .2d, .L1::no_allocate: with the dot
    kInteger,      // bits
    kFloat,        // bits of a double, or of a float when `single`
    kString,       // text without the quotes, escapes as written
    kPunctuation,  // one or two characters
  };
  Kind kind = Kind::kEnd;
  bool is_unsigned = false;  // of an integer: suffix U, or beyond 63 bits
  bool single = false;
  int line = 1;
  uint64_t bits = 0;
  std::string_view text;
  const char* message = "";
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  // The next token; after the end kEnd again and again, and nothing is defined after kError.
  Token Next();
  // Drops the rest of the line.
  void SkipLine();

 private:
  char At(size_t offset) const {
    return next_ + offset < text_.size() ? text_[next_ + offset] : '\0';
  }
  Token Make(Token::Kind kind, size_t length);
  Token Fail(size_t length, const char* message);
  // Skips blanks and comments; false with `*failure` set for a comment without end.
  bool SkipBlanks(Token* failure);
  Token Number();
  Token HexFloat();
  Token Integer(size_t prefix, unsigned base);
  Token DecimalFloat(size_t length);
  Token DotWord();
  Token String();
  Token Punctuation();

  std::string_view text_;
  size_t next_ = 0;
  int line_ = 1;
};

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_PTX_LEXER_H_
