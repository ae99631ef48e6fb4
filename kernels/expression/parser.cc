#include <algorithm>
#include <cctype>
#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/status.h"
#include "base/strings.h"
#include "kernels/expression/expression.h"
#include "kernels/expression/program.h"

namespace assay {
namespace {

struct BinaryOperator {
  std::string_view symbol;
  int precedence;  // higher binds tighter
  OpCode op;
};

constexpr int kOrPrecedence = 1;
constexpr int kAndPrecedence = 2;

// Longer symbols first, so that "<=" is not read as "<". The codes of && and || are not used.
constexpr BinaryOperator kOperators[] = {
    {"||", kOrPrecedence, OpCode::kJumpKeepOne},
    {"&&", kAndPrecedence, OpCode::kJumpKeepZero},
    {"==", 3, OpCode::kEqual},
    {"!=", 3, OpCode::kNotEqual},
    {"<=", 4, OpCode::kLessEqual},
    {">=", 4, OpCode::kGreaterEqual},
    {"<", 4, OpCode::kLess},
    {">", 4, OpCode::kGreater},
    {"+", 5, OpCode::kAdd},
    {"-", 5, OpCode::kSubtract},
    {"*", 6, OpCode::kMultiply},
    {"/", 6, OpCode::kDivide},
    {"%", 6, OpCode::kModulo},
};

bool IsNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsNamePart(char c) { return IsNameStart(c) || IsDigit(c); }

// Recursive descent with precedence climbing; the recursion is bounded by `depth_`.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  absl::Status Run() {
    ASSAY_RETURN_IF_ERROR(Conditional());
    SkipBlanks();
    if (at_ < text_.size()) return Error("an operator or the end");
    return absl::OkStatus();
  }

  std::vector<Instruction> TakeCode() { return std::move(code_); }
  const std::vector<std::string>& names() const { return names_; }

 private:
  // Counts nesting for the lifetime of one recursive call.
  class Nesting {
   public:
    explicit Nesting(int& depth) : depth_(depth) { ++depth_; }
    ~Nesting() { --depth_; }
    bool TooDeep() const { return depth_ > limits::kExpressionDepthMax; }

   private:
    int& depth_;
  };

  absl::Status Error(std::string_view expected) const {
    const std::string found = at_ < text_.size()
                                  ? absl::StrCat("found ", LogEscape(text_.substr(at_, 8)))
                                  : "the expression ends";
    return absl::InvalidArgumentError(
        absl::StrCat("column ", at_ + 1, ": expected ", Av(expected), ", but ", found));
  }

  void SkipBlanks() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) {
      ++at_;
    }
  }

  bool Accept(std::string_view symbol) {
    SkipBlanks();
    if (text_.substr(at_, symbol.size()) != symbol) return false;
    at_ += symbol.size();
    return true;
  }

  absl::Status Expect(std::string_view symbol) {
    if (Accept(symbol)) return absl::OkStatus();
    return Error(absl::StrCat("'", Av(symbol), "'"));
  }

  void Emit(OpCode op, int64_t operand = 0) { code_.push_back({op, operand}); }

  // Emits a jump whose target is set later by Land.
  size_t EmitJump(OpCode op) {
    Emit(op);
    return code_.size() - 1;
  }
  void Land(size_t jump) { code_[jump].operand = static_cast<int64_t>(code_.size()); }

  absl::Status Conditional() {
    const Nesting nesting(depth_);
    if (nesting.TooDeep()) return TooDeep();
    ASSAY_RETURN_IF_ERROR(Operators(kOrPrecedence));
    if (!Accept("?")) return absl::OkStatus();
    const size_t to_else = EmitJump(OpCode::kJumpIfZero);
    ASSAY_RETURN_IF_ERROR(Conditional());
    ASSAY_RETURN_IF_ERROR(Expect(":"));
    const size_t to_end = EmitJump(OpCode::kJump);
    Land(to_else);
    ASSAY_RETURN_IF_ERROR(Conditional());
    Land(to_end);
    return absl::OkStatus();
  }

  absl::Status TooDeep() const {
    return absl::InvalidArgumentError(absl::StrCat("column ", at_ + 1, ": nested deeper than ",
                                                   limits::kExpressionDepthMax, " levels"));
  }

  const BinaryOperator* PeekOperator() {
    SkipBlanks();
    for (const BinaryOperator& candidate : kOperators) {
      if (text_.substr(at_, candidate.symbol.size()) == candidate.symbol) return &candidate;
    }
    return nullptr;
  }

  absl::Status Operators(int precedence_min) {
    ASSAY_RETURN_IF_ERROR(Unary());
    for (;;) {
      const BinaryOperator* next = PeekOperator();
      if (next == nullptr || next->precedence < precedence_min) return absl::OkStatus();
      at_ += next->symbol.size();
      const bool lazy = next->precedence <= kAndPrecedence;
      const size_t jump = lazy ? EmitJump(next->op) : 0;
      ASSAY_RETURN_IF_ERROR(Operators(next->precedence + 1));
      if (lazy) {
        Emit(OpCode::kToBool);
        Land(jump);
      } else {
        Emit(next->op);
      }
    }
  }

  absl::Status Unary() {
    const Nesting nesting(depth_);
    if (nesting.TooDeep()) return TooDeep();
    if (Accept("-")) {
      ASSAY_RETURN_IF_ERROR(Unary());
      Emit(OpCode::kNegate);
      return absl::OkStatus();
    }
    SkipBlanks();
    if (text_.substr(at_, 1) == "!" && text_.substr(at_, 2) != "!=") {
      ++at_;
      ASSAY_RETURN_IF_ERROR(Unary());
      Emit(OpCode::kNot);
      return absl::OkStatus();
    }
    return Primary();
  }

  absl::Status Primary() {
    if (Accept("(")) {
      ASSAY_RETURN_IF_ERROR(Conditional());
      return Expect(")");
    }
    if (at_ < text_.size() && IsDigit(text_[at_])) return Number();
    if (at_ < text_.size() && IsNameStart(text_[at_])) return NameOrCall();
    if (text_.substr(at_, 1) == "." && at_ + 1 < text_.size() && IsDigit(text_[at_ + 1])) {
      return NotWhole(at_);
    }
    return Error("a number, a name or '('");
  }

  // "1e-5", "0.5", of which `at_` has reached the point or the exponent.
  bool AtFractionOrExponent() const {
    const std::string_view rest = text_.substr(at_);
    if (rest.starts_with('.')) return true;
    return rest.size() > 1 && (rest[0] == 'e' || rest[0] == 'E') &&
           (IsDigit(rest[1]) || rest[1] == '+' || rest[1] == '-');
  }

  // The number that begins at `start` is none of the integers.
  absl::Status NotWhole(size_t start) const {
    size_t end = start;
    for (; end < text_.size(); ++end) {
      const bool exponent_sign = (text_[end] == '+' || text_[end] == '-') && end > start &&
                                 (text_[end - 1] == 'e' || text_[end - 1] == 'E');
      if (text_[end] != '.' && !IsNamePart(text_[end]) && !exponent_sign) break;
    }
    return absl::InvalidArgumentError(
        absl::StrCat("column ", start + 1, ": whole numbers only, but found ",
                     LogEscape(text_.substr(start, std::min<size_t>(end - start, 32)))));
  }

  absl::Status Number() {
    const size_t start = at_;
    int64_t value = 0;
    for (; at_ < text_.size() && IsDigit(text_[at_]); ++at_) {
      if (__builtin_mul_overflow(value, 10, &value) ||
          __builtin_add_overflow(value, text_[at_] - '0', &value)) {
        return absl::InvalidArgumentError(
            absl::StrCat("column ", start + 1, ": the number is larger than 2^63 - 1"));
      }
    }
    if (text_[start] == '0' && at_ > start + 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("column ", start + 1,
                       ": numbers are decimal and have no leading zeros; write them without"));
    }
    if (AtFractionOrExponent()) return NotWhole(start);
    if (at_ < text_.size() && IsNamePart(text_[at_])) return Error("an operator or the end");
    Emit(OpCode::kPush, value);
    return absl::OkStatus();
  }

  absl::Status NameOrCall() {
    const size_t start = at_;
    while (at_ < text_.size() && IsNamePart(text_[at_])) ++at_;
    const std::string_view name = text_.substr(start, at_ - start);
    if (name == "min") return Call(OpCode::kMin, 2, limits::kExpressionBytesMax);
    if (name == "max") return Call(OpCode::kMax, 2, limits::kExpressionBytesMax);
    if (name == "ceil_div") return Call(OpCode::kCeilDiv, 2, 2);
    if (name.size() > limits::kNameBytesMax) {
      return absl::InvalidArgumentError(absl::StrCat("column ", start + 1, ": a name of ",
                                                     name.size(), " bytes; at most ",
                                                     limits::kNameBytesMax, " are allowed"));
    }
    SkipBlanks();
    if (text_.substr(at_, 1) == "(") {
      at_ = start;
      return Error("one of the functions min, max and ceil_div");
    }
    auto it = std::find(names_.begin(), names_.end(), name);
    if (it == names_.end()) it = names_.insert(names_.end(), std::string(name));
    Emit(OpCode::kLoad, it - names_.begin());
    return absl::OkStatus();
  }

  // `op` folds its arguments from the left.
  absl::Status Call(OpCode op, size_t count_min, size_t count_max) {
    ASSAY_RETURN_IF_ERROR(Expect("("));
    size_t count = 0;
    do {
      if (count == count_max) return Error("')'");
      ASSAY_RETURN_IF_ERROR(Conditional());
      if (++count > 1) Emit(op);
    } while (Accept(","));
    if (count < count_min) return Error("',' and another argument");
    return Expect(")");
  }

  const std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
  std::vector<Instruction> code_;
  std::vector<std::string> names_;
};

}  // namespace

absl::StatusOr<Expression> Expression::Parse(std::string_view text) {
  if (text.size() > limits::kExpressionBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat("an expression of ", text.size(),
                                                   " bytes; at most ", limits::kExpressionBytesMax,
                                                   " are allowed"));
  }
  Parser parser(text);
  const absl::Status status = parser.Run();
  if (!status.ok()) {
    return Annotate(status, absl::StrCat("expression ", LogEscape(text.substr(0, 128))));
  }
  // Sorted names; loads are renumbered to match.
  Expression out;
  out.text_ = std::string(text);
  out.names_ = parser.names();
  std::sort(out.names_.begin(), out.names_.end());
  auto program = std::make_shared<Program>();
  program->code = parser.TakeCode();
  for (Instruction& in : program->code) {
    if (in.op != OpCode::kLoad) continue;
    const std::string& name = parser.names()[static_cast<size_t>(in.operand)];
    in.operand = std::lower_bound(out.names_.begin(), out.names_.end(), name) - out.names_.begin();
  }
  out.program_ = std::move(program);
  return out;
}

}  // namespace assay
