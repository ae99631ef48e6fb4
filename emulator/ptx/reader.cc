#include "emulator/ptx/reader.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/strings.h"
#include "base/text.h"

namespace assay::emulator {
namespace {

constexpr size_t kExcerptBytes = 40;
// Of a message: names in it may be as long as the text.
constexpr size_t kMessageBytes = 400;

std::string Shorten(std::string_view text, size_t bytes_max) {
  if (text.size() <= bytes_max) return PrintableLine(text);
  return absl::StrCat(PrintableLine(text.substr(0, bytes_max)), "...");
}

std::string Excerpt(std::string_view text) { return Shorten(text, kExcerptBytes); }

std::string AtLine(int line, std::string_view message) {
  return absl::StrCat("line ", line, ": ", Shorten(message, kMessageBytes));
}

}  // namespace

bool Reader::Is(std::string_view text) const {
  switch (token_.kind) {
    case Token::Kind::kIdentifier:
    case Token::Kind::kDotWord:
    case Token::Kind::kPunctuation:
      return token_.text == text;
    default:
      return false;
  }
}

bool Reader::PeekIs(std::string_view punctuation) const {
  const Token next = Peek();
  return next.kind == Token::Kind::kPunctuation && next.text == punctuation;
}

void Reader::SkipLine() {
  lexer_.SkipLine();
  Advance();
}

bool Reader::Accept(std::string_view text) {
  if (!Is(text)) return false;
  Advance();
  return true;
}

absl::Status Reader::Expect(std::string_view text) {
  if (Accept(text)) return absl::OkStatus();
  return Expected(absl::StrCat("'", Av(text), "'"));
}

absl::Status Reader::Identifier(std::string_view what, std::string_view* name) {
  if (!IsIdentifier()) return Expected(what);
  *name = token_.text;
  Advance();
  return absl::OkStatus();
}

absl::Status Reader::Integer(std::string_view what, int64_t least, int64_t most, int64_t* value) {
  if (token_.kind != Token::Kind::kInteger) return Expected(what);
  if (token_.bits > static_cast<uint64_t>(most) || static_cast<int64_t>(token_.bits) < least) {
    return Error(absl::StrCat(Av(what), " is ", token_.bits, ", outside of ", least, " to ", most));
  }
  *value = static_cast<int64_t>(token_.bits);
  Advance();
  return absl::OkStatus();
}

absl::Status Reader::SkipBalanced(std::string_view open, std::string_view close) {
  const int first_line = line();
  int64_t depth = 0;
  do {
    if (token_.kind == Token::Kind::kError) return Expected(close);
    if (at_end()) {
      return ErrorAt(first_line,
                     absl::StrCat("'", Av(open), "' has no matching '", Av(close), "'"));
    }
    if (Is(open)) ++depth;
    if (Is(close)) --depth;
    Advance();
  } while (depth > 0);
  return absl::OkStatus();
}

absl::Status Reader::ErrorAt(int line, std::string_view message) {
  return absl::InvalidArgumentError(AtLine(line, message));
}

absl::Status Reader::Expected(std::string_view what) const {
  switch (token_.kind) {
    case Token::Kind::kError:
      return Error(absl::StrCat(token_.message, ": '", Excerpt(token_.text), "'"));
    case Token::Kind::kEnd:
      return Error(absl::StrCat("expected ", Av(what), ", but the text ends"));
    case Token::Kind::kString:
      return Error(
          absl::StrCat("expected ", Av(what), ", found the string \"", Excerpt(token_.text), "\""));
    default:
      return Error(absl::StrCat("expected ", Av(what), ", found '", Excerpt(token_.text), "'"));
  }
}

absl::Status Reader::Exhausted(std::string_view message) const {
  return absl::ResourceExhaustedError(AtLine(token_.line, message));
}

absl::Status Reader::Charge(int64_t items) {
  items_ += items;
  if (items_ <= limits_.items_max) return absl::OkStatus();
  return Exhausted(absl::StrCat("the text has more than ", limits_.items_max,
                                " operands, modifiers, labels and declarations"));
}

absl::Status Reader::ChargeInstruction() {
  if (++instructions_ <= limits_.instructions_max) return absl::OkStatus();
  return Exhausted(
      absl::StrCat("the text has more than ", limits_.instructions_max, " instructions"));
}

absl::Status Reader::ChargeBytes(int64_t bytes) {
  if (bytes <= limits_.variable_bytes_max - variable_bytes_) {
    variable_bytes_ += bytes;
    return absl::OkStatus();
  }
  return Exhausted(
      absl::StrCat("the variables take more than ", limits_.variable_bytes_max, " bytes"));
}

absl::Status Reader::CheckDepth(int64_t depth) const {
  if (depth <= limits_.depth_max) return absl::OkStatus();
  return Exhausted(absl::StrCat("nested deeper than ", limits_.depth_max));
}

}  // namespace assay::emulator
