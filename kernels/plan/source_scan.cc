#include "kernels/plan/source_scan.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "base/strings.h"

namespace assay {
namespace {

enum class Kind : uint8_t { kWord, kNumber, kText, kSymbol, kEnd };

struct Token {
  Kind kind = Kind::kEnd;
  std::string_view text;
  int line = 0;
};

bool IsWordStart(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsWordPart(char c) { return IsWordStart(c) || IsDigit(c); }

std::optional<int64_t> PlainInteger(std::string_view text) {
  while (!text.empty() && std::string_view("uUlL").find(text.back()) != text.npos) {
    text.remove_suffix(1);
  }
  int64_t value = 0;
  if (!absl::SimpleAtoi(Av(text), &value)) return std::nullopt;
  return value;
}

// R, the quote, a delimiter of at most 16 characters and the bracket.
constexpr size_t kRawHeadMax = 19;

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  std::vector<Token> Run(std::map<std::string, int64_t>* constants) {
    while (at_ < text_.size()) Next(constants);
    return std::move(tokens_);
  }

 private:
  char Peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  void Advance(size_t count) {
    const size_t end = std::min(text_.size(), at_ + count);
    for (; at_ < end; ++at_) {
      if (text_[at_] != '\n') continue;
      ++line_;
      line_begins_ = true;
    }
  }

  void SkipTo(std::string_view end) {
    const size_t found = text_.find(end, at_);
    Advance(found == text_.npos ? text_.size() : found + end.size() - at_);
  }

  void Add(Kind kind, size_t begin, int line) {
    tokens_.push_back({kind, text_.substr(begin, at_ - begin), line});
    line_begins_ = false;
  }

  void Next(std::map<std::string, int64_t>* constants) {
    const char c = Peek();
    const size_t begin = at_;
    const int line = line_;
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      Advance(1);
    } else if (c == '/' && Peek(1) == '/') {
      SkipTo("\n");
    } else if (c == '/' && Peek(1) == '*') {
      Advance(2);
      SkipTo("*/");
    } else if (c == '#' && line_begins_) {
      Directive(constants);
    } else if (c == '"' || c == '\'') {
      Literal(c);
      Add(Kind::kText, begin, line);
    } else if (c == 'R' && Peek(1) == '"') {
      RawLiteral();
      Add(Kind::kText, begin, line);
    } else if (IsWordStart(c) || IsDigit(c)) {
      // 0x1F, 1.5f and 1'000 are single tokens too.
      const bool number = IsDigit(c);
      while (at_ < text_.size() && (IsWordPart(Peek()) || (number && Peek() == '.'))) ++at_;
      Add(number ? Kind::kNumber : Kind::kWord, begin, line);
    } else {
      Advance(1);
      Add(Kind::kSymbol, begin, line);
    }
  }

  void Literal(char quote) {
    Advance(1);
    while (at_ < text_.size() && Peek() != quote && Peek() != '\n') {
      Advance(Peek() == '\\' ? 2 : 1);
    }
    Advance(1);
  }

  void RawLiteral() {
    const size_t bracket = text_.substr(at_, kRawHeadMax).find('(');
    if (bracket == text_.npos) {
      Advance(2);
      return;
    }
    const size_t open = at_ + bracket;
    const std::string end = absl::StrCat(")", Av(text_.substr(at_ + 2, open - at_ - 2)), "\"");
    Advance(open + 1 - at_);
    SkipTo(end);
  }

  // Skips to the end of the line, and of those that a backslash joins to it.
  void Directive(std::map<std::string, int64_t>* constants) {
    const size_t begin = at_;
    size_t end = text_.find('\n', at_);
    while (end != text_.npos && end > begin && text_[end - 1] == '\\') {
      end = text_.find('\n', end + 1);
    }
    std::string_view line = text_.substr(begin, end == text_.npos ? end : end - begin);
    Advance(end == text_.npos ? text_.size() : end - begin);
    line = line.substr(0, line.find("//"));
    std::vector<std::string_view> words;
    for (size_t i = 1; i < line.size();) {
      const size_t start = line.find_first_not_of(" \t\r()", i);
      if (start == line.npos) break;
      i = std::min(line.find_first_of(" \t\r()", start), line.size());
      words.push_back(line.substr(start, i - start));
    }
    if (words.size() != 3 || words[0] != "define") return;
    const std::optional<int64_t> value = PlainInteger(words[2]);
    if (value.has_value()) (*constants)[std::string(words[1])] = *value;
  }

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_begins_ = true;
  std::vector<Token> tokens_;
};

// Words before a kernel's name, and tokens of its launch bound.
constexpr size_t kHeadTokensMax = 64;

class Scanner {
 public:
  explicit Scanner(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  void Run(ScannedSource* out) {
    for (size_t at = 0; at < tokens_.size();) {
      if (Is(at, "extern") && At(at + 1).text == "\"C\"" && Is(at + 2, "{")) {
        c_blocks_.push_back(depth_++);
        at += 3;
      } else if (Is(at, "__global__")) {
        at = Kernel(at, out);
      } else {
        if (Is(at, "extern") && Is(at + 1, "__shared__")) out->has_dynamic_shared = true;
        Constant(at, out);
        Brace(at++);
      }
    }
  }

 private:
  const Token& At(size_t at) const { return at < tokens_.size() ? tokens_[at] : end_; }
  bool Is(size_t at, std::string_view text) const {
    return At(at).kind != Kind::kText && At(at).text == text;
  }

  void Brace(size_t at) {
    if (Is(at, "{")) ++depth_;
    if (!Is(at, "}") || depth_ == 0) return;
    --depth_;
    if (!c_blocks_.empty() && c_blocks_.back() == depth_) c_blocks_.pop_back();
  }

  // [static] constexpr|const int NAME = 123;
  void Constant(size_t at, ScannedSource* out) const {
    if (!Is(at, "constexpr") && !Is(at, "const")) return;
    for (size_t i = at + 1; i < at + 6; ++i) {
      if (!Is(i, "=")) continue;
      const std::optional<int64_t> value = PlainInteger(At(i + 1).text);
      if (At(i - 1).kind == Kind::kWord && At(i + 1).kind == Kind::kNumber && Is(i + 2, ";") &&
          value.has_value()) {
        out->constants[std::string(At(i - 1).text)] = *value;
      }
      return;
    }
  }

  // After the closing partner of the bracket at `at`; the end when there is none.
  size_t Skip(size_t at, std::string_view open, std::string_view close) const {
    int depth = 0;
    for (; at < tokens_.size(); ++at) {
      if (Is(at, open)) ++depth;
      if (Is(at, close) && --depth == 0) return at + 1;
    }
    return at;
  }

  // `at` is __global__. Returns where to go on.
  size_t Kernel(size_t at, ScannedSource* out) const {
    ScannedKernel kernel;
    kernel.is_extern_c = !c_blocks_.empty();
    // `extern "C"` stands before, perhaps with words such as `static inline` between.
    for (size_t back = at; back > 0 && at - back < 8; --back) {
      const Token& token = tokens_[back - 1];
      if (token.text == "\"C\"") kernel.is_extern_c = true;
      if (token.kind != Kind::kWord) break;
    }
    size_t i = at + 1;
    for (; i < at + kHeadTokensMax && !Is(i, "(") && !Is(i, ";") && !Is(i, "{"); ++i) {
      if (At(i).kind != Kind::kWord || !Is(i + 1, "(")) continue;
      if (!Is(i, "__launch_bounds__") && !Is(i, "__attribute__") && !Is(i, "__cluster_dims__")) {
        break;
      }
      if (Is(i, "__launch_bounds__")) {
        for (size_t k = i + 2; k < i + kHeadTokensMax && !Is(k, ",") && !Is(k, ")"); ++k) {
          kernel.launch_bound += std::string(At(k).text);
        }
      }
      const size_t after = Skip(i + 1, "(", ")");
      if (after >= tokens_.size()) return after;
      i = after - 1;
    }
    if (At(i).kind != Kind::kWord || !Is(i + 1, "(")) return at + 1;
    kernel.name = std::string(At(i).text);
    kernel.line = At(i).line;
    const size_t end = Skip(i + 1, "(", ")");
    Parameters(i + 2, end - 1, &kernel);
    if (!Is(end, "{")) return end;  // a declaration
    const size_t body_end = Skip(end, "{", "}");
    Body(end, body_end, &kernel);
    if (kernel.uses_dynamic_shared) out->has_dynamic_shared = true;
    out->kernels.push_back(std::move(kernel));
    return body_end;
  }

  void Parameters(size_t begin, size_t end, ScannedKernel* kernel) const {
    int depth = 0;
    size_t first = begin;
    for (size_t i = begin; i <= end; ++i) {
      if (Is(i, "(") || Is(i, "<") || Is(i, "[")) ++depth;
      if (Is(i, ">") || Is(i, "]") || (Is(i, ")") && i < end)) --depth;
      if (i != end && (depth > 0 || !Is(i, ","))) continue;
      if (i > first) Parameter(first, i, kernel);
      first = i + 1;
    }
  }

  void Parameter(size_t begin, size_t end, ScannedKernel* kernel) const {
    ScannedParameter parameter;
    parameter.line = At(begin).line;
    std::vector<std::string_view> words;
    for (size_t i = begin; i < end && !Is(i, "="); ++i) {
      const std::string_view text = At(i).text;
      if (text == "*" || text == "[") {
        parameter.is_pointer = true;
        if (text == "[") i = Skip(i, "[", "]") - 1;
      } else if (text == "const") {
        // After the star it is the pointer that does not change.
        parameter.is_const = parameter.is_const || !parameter.is_pointer;
      } else if (text != "__restrict__" && text != "__restrict" && text != "restrict" &&
                 text != "__grid_constant__" && text != "volatile" && text != "struct") {
        words.push_back(text);
      }
    }
    if (words.size() == 1 && words[0] == "void" && !parameter.is_pointer) return;
    const bool named = words.size() > 1 && IsWordStart(words.back()[0]);
    if (named) {
      parameter.name = std::string(words.back());
      words.pop_back();
    }
    for (const std::string_view word : words) {
      const bool joins = parameter.type.empty() || word == ":" || parameter.type.back() == ':';
      absl::StrAppend(&parameter.type, joins ? "" : " ", Av(word));
    }
    if (kernel->parameters.size() <= limits::kLaunchArgumentsMax) {
      kernel->parameters.push_back(std::move(parameter));
    }
  }

  void Body(size_t begin, size_t end, ScannedKernel* kernel) const {
    for (size_t i = begin; i < end; ++i) {
      if (Is(i, "extern") && Is(i + 1, "__shared__")) kernel->uses_dynamic_shared = true;
      if (Is(i, "gridDim")) kernel->loops_over_grid = true;
      if ((!Is(i, "blockIdx") && !Is(i, "threadIdx")) || !Is(i + 1, ".")) continue;
      const size_t dimension = std::string_view("xyz").find(At(i + 2).text);
      if (dimension >= 3) continue;
      (Is(i, "blockIdx") ? kernel->uses_block : kernel->uses_thread)[dimension] = true;
      if (Is(i, "blockIdx") &&
          (Multiplies(i - 1, false, *kernel) || Multiplies(i + 3, true, *kernel))) {
        kernel->multiplies_block[dimension] = true;
      }
    }
  }

  // Whether a * follows (or precedes), also behind the bracket of a cast such as (int)blockIdx.x,
  // with a factor that is no parameter.
  bool Multiplies(size_t at, bool forward, const ScannedKernel& kernel) const {
    const size_t step = forward ? size_t{1} : ~size_t{0};
    if (!forward && Is(at, ")") && Is(at - 2, "(")) at -= 3;
    while (Is(at, forward ? ")" : "(")) at += step;
    if (!Is(at, "*")) return false;
    at += step;
    if (forward && Is(at, "(") && Is(at + 2, ")")) at += 3;
    const Token& factor = At(at);
    return std::none_of(
        kernel.parameters.begin(), kernel.parameters.end(),
        [&](const ScannedParameter& parameter) { return parameter.name == factor.text; });
  }

  std::vector<Token> tokens_;
  const Token end_;
  int depth_ = 0;
  std::vector<int> c_blocks_;  // depths at which `extern "C" {` opened
};

}  // namespace

ScannedSource ScanCudaSource(std::string_view text) {
  ScannedSource out;
  std::vector<Token> tokens = Lexer(text).Run(&out.constants);
  Scanner(std::move(tokens)).Run(&out);
  return out;
}

}  // namespace assay
