// The tokens of a text one after another, with errors that name the line and a count of what was
// made.
//
// One Reader is shared by the parts of the parser; not thread-safe. The text must outlive it.
#ifndef ASSAY_EMULATOR_PTX_READER_H_
#define ASSAY_EMULATOR_PTX_READER_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "emulator/ptx/lexer.h"
#include "emulator/ptx/module.h"

namespace assay::emulator {

class Reader {
 public:
  Reader(std::string_view text, const ParseLimits& limits) : lexer_(text), limits_(limits) {
    Advance();
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  const Token& token() const { return token_; }
  int line() const { return token_.line; }
  bool at_end() const { return token_.kind == Token::Kind::kEnd; }
  bool IsIdentifier() const { return token_.kind == Token::Kind::kIdentifier; }
  bool IsDotWord() const { return token_.kind == Token::Kind::kDotWord; }
  // Whether the present token is this word or punctuation.
  bool Is(std::string_view text) const;
  // The token after the present one.
  Token Peek() const { return Lexer(lexer_).Next(); }
  bool PeekIs(std::string_view punctuation) const;

  void Advance() { token_ = lexer_.Next(); }
  void SkipLine();
  bool Accept(std::string_view text);
  absl::Status Expect(std::string_view text);
  absl::Status Identifier(std::string_view what, std::string_view* name);
  // A plain integer of `least` to `most`, no expression.
  absl::Status Integer(std::string_view what, int64_t least, int64_t most, int64_t* value);
  // From the present token, which is `open`, to behind the matching `close`.
  absl::Status SkipBalanced(std::string_view open, std::string_view close);

  // INVALID_ARGUMENT "line N: message".
  absl::Status Error(std::string_view message) const { return ErrorAt(token_.line, message); }
  static absl::Status ErrorAt(int line, std::string_view message);
  // INVALID_ARGUMENT "line N: expected WHAT, found ...", or what the lexer has against the token.
  absl::Status Expected(std::string_view what) const;
  // RESOURCE_EXHAUSTED "line N: message".
  absl::Status Exhausted(std::string_view message) const;

  // Each counts towards a limit and is RESOURCE_EXHAUSTED beyond it.
  absl::Status Charge(int64_t items);
  // For a copy of a text that may be longer than what asks for it.
  absl::Status ChargeText(std::string_view text) {
    return Charge(static_cast<int64_t>(text.size() / kBytesAnItem));
  }
  absl::Status ChargeInstruction();
  absl::Status ChargeBytes(int64_t bytes);  // of a variable
  absl::Status CheckDepth(int64_t depth) const;

  const ParseLimits& limits() const { return limits_; }

 private:
  friend class Nesting;

  static constexpr size_t kBytesAnItem = 100;

  Lexer lexer_;
  const ParseLimits limits_;
  Token token_;
  int64_t items_ = 0;
  int64_t instructions_ = 0;
  int64_t variable_bytes_ = 0;
  int depth_ = 0;
};

// Counts one recursive call for its lifetime.
class Nesting {
 public:
  explicit Nesting(Reader* reader) : reader_(reader) { ++reader_->depth_; }
  ~Nesting() { --reader_->depth_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;
  absl::Status Check() const { return reader_->CheckDepth(reader_->depth_); }

 private:
  Reader* reader_;
};

}  // namespace assay::emulator

#endif  // ASSAY_EMULATOR_PTX_READER_H_
