#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status.h"
#include "base/strings.h"
#include "kernels/expression/expression.h"
#include "kernels/expression/program.h"

namespace assay {
namespace {

constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();

const char* Symbol(OpCode op) {
  switch (op) {
    case OpCode::kAdd:
      return "+";
    case OpCode::kSubtract:
      return "-";
    case OpCode::kMultiply:
      return "*";
    case OpCode::kDivide:
      return "/";
    case OpCode::kModulo:
      return "%";
    default:
      return "ceil_div";
  }
}

// Expressions may be hostile and long.
std::string Shown(const std::string& text) { return LogEscape(text.substr(0, 128)); }

absl::Status Overflow(OpCode op, int64_t a, int64_t b) {
  return absl::OutOfRangeError(
      absl::StrCat("overflow of 64 bits in ", a, " ", Symbol(op), " ", b, "; use smaller values"));
}

// b / a, b % a and ceil_div, with every case that C++ leaves undefined as an error.
absl::Status Divide(OpCode op, int64_t a, int64_t b, int64_t* out) {
  if (b == 0 || (op == OpCode::kCeilDiv && b < 0)) {
    return absl::OutOfRangeError(absl::StrCat(a, " ", Symbol(op), " ", b, ": the divisor must ",
                                              op == OpCode::kCeilDiv ? "be positive" : "not be 0"));
  }
  if (a == kLowest && b == -1) return Overflow(op, a, b);
  const int64_t quotient = a / b;
  const int64_t remainder = a % b;
  if (op == OpCode::kDivide) *out = quotient;
  if (op == OpCode::kModulo) *out = remainder;
  if (op == OpCode::kCeilDiv) *out = quotient + (remainder > 0 ? 1 : 0);
  return absl::OkStatus();
}

absl::Status Binary(OpCode op, int64_t a, int64_t b, int64_t* out) {
  switch (op) {
    case OpCode::kAdd:
      return __builtin_add_overflow(a, b, out) ? Overflow(op, a, b) : absl::OkStatus();
    case OpCode::kSubtract:
      return __builtin_sub_overflow(a, b, out) ? Overflow(op, a, b) : absl::OkStatus();
    case OpCode::kMultiply:
      return __builtin_mul_overflow(a, b, out) ? Overflow(op, a, b) : absl::OkStatus();
    case OpCode::kDivide:
    case OpCode::kModulo:
    case OpCode::kCeilDiv:
      return Divide(op, a, b, out);
    case OpCode::kEqual:
      *out = a == b;
      break;
    case OpCode::kNotEqual:
      *out = a != b;
      break;
    case OpCode::kLess:
      *out = a < b;
      break;
    case OpCode::kLessEqual:
      *out = a <= b;
      break;
    case OpCode::kGreater:
      *out = a > b;
      break;
    case OpCode::kGreaterEqual:
      *out = a >= b;
      break;
    case OpCode::kMin:
      *out = a < b ? a : b;
      break;
    case OpCode::kMax:
      *out = a > b ? a : b;
      break;
    default:
      return absl::InternalError("an expression holds an instruction that takes no two values");
  }
  return absl::OkStatus();
}

// Most expressions need no more, so that evaluating one allocates nothing.
using Stack = absl::InlinedVector<int64_t, 16>;

// Runs instructions that move control or work on one value. Returns false for the others.
bool Step(const Instruction& in, std::span<const int64_t> loaded, Stack& stack, size_t& pc) {
  switch (in.op) {
    case OpCode::kPush:
      stack.push_back(in.operand);
      return true;
    case OpCode::kLoad:
      stack.push_back(loaded[static_cast<size_t>(in.operand)]);
      return true;
    case OpCode::kNot:
      stack.back() = stack.back() == 0;
      return true;
    case OpCode::kToBool:
      stack.back() = stack.back() != 0;
      return true;
    case OpCode::kJump:
      pc = static_cast<size_t>(in.operand);
      return true;
    case OpCode::kJumpIfZero:
    case OpCode::kJumpKeepZero:
    case OpCode::kJumpKeepOne: {
      const bool zero = stack.back() == 0;
      const bool jump = zero == (in.op != OpCode::kJumpKeepOne);
      if (jump) pc = static_cast<size_t>(in.operand);
      if (!jump || in.op == OpCode::kJumpIfZero) {
        stack.pop_back();
      } else {
        stack.back() = zero ? 0 : 1;
      }
      return true;
    }
    default:
      return false;
  }
}

}  // namespace

absl::StatusOr<int64_t> Expression::Evaluate(const ValueMap& values) const {
  if (program_ == nullptr) return absl::InternalError("an empty expression was evaluated");
  std::vector<int64_t> loaded;
  loaded.reserve(names_.size());
  for (const std::string& name : names_) {
    const auto it = values.find(name);
    if (it == values.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("unknown name '", name, "' in ", Shown(text_)));
    }
    loaded.push_back(it->second);
  }
  return Evaluate(loaded);
}

absl::StatusOr<int64_t> Expression::Evaluate(std::span<const int64_t> loaded) const {
  if (program_ == nullptr) return absl::InternalError("an empty expression was evaluated");
  if (loaded.size() != names_.size()) {
    return absl::InvalidArgumentError(absl::StrCat(Shown(text_), " has ", names_.size(),
                                                   " names, and ", loaded.size(), " values"));
  }
  Stack stack;
  size_t pc = 0;
  while (pc < program_->code.size()) {
    const Instruction& in = program_->code[pc++];
    if (Step(in, loaded, stack, pc)) continue;
    int64_t out = 0;
    absl::Status status;
    if (in.op == OpCode::kNegate) {
      status = Binary(OpCode::kSubtract, 0, stack.back(), &out);
    } else {
      const int64_t b = stack.back();
      stack.pop_back();
      status = Binary(in.op, stack.back(), b, &out);
    }
    if (!status.ok()) return Annotate(status, Shown(text_));
    stack.back() = out;
  }
  return stack.back();
}

absl::StatusOr<int64_t> EvaluateExpression(std::string_view text, const ValueMap& values) {
  ASSAY_ASSIGN_OR_RETURN(const Expression expression, Expression::Parse(text));
  return expression.Evaluate(values);
}

}  // namespace assay
