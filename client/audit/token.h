// C++ text as tokens, as far as mutating it needs: comments left out, a preprocessor line one
// token. No grammar beyond that. Pure functions.
#ifndef ASSAY_CLIENT_AUDIT_TOKEN_H_
#define ASSAY_CLIENT_AUDIT_TOKEN_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

struct Token {
  enum class Kind { kName, kNumber, kText, kPunctuation, kPreprocessor };
  Kind kind = Kind::kPunctuation;
  std::string_view text;  // into the source
  size_t begin = 0;       // offset in the source
  int line = 0;           // from 1

  size_t end() const { return begin + text.size(); }
  bool Is(std::string_view what) const { return text == what; }
  bool IsName() const { return kind == Kind::kName; }
  bool IsNumber() const { return kind == Kind::kNumber; }
};

// The tokens point into `source`. Text that ends within a comment or literal ends the token there.
std::vector<Token> Tokenize(std::string_view source);

// Where a token stands.
struct Place {
  bool in_body = false;       // of a function
  bool in_subscript = false;  // between the brackets of one
  bool is_template = false;   // an angle of template arguments
  int for_clause = 0;         // 1 to 3 between the parentheses of a `for`
  size_t match = 0;           // of a bracket: its partner's index, or its own when it has none
};

// One for each token.
std::vector<Place> FindPlaces(const std::vector<Token>& tokens);

}  // namespace assay

#endif  // ASSAY_CLIENT_AUDIT_TOKEN_H_
