#include "emulator/ptx/constant.h"

#include <bit>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/strings.h"

namespace assay::emulator {
namespace {

enum class Operator : uint8_t {
  kLogicalOr,
  kLogicalAnd,
  kOr,
  kXor,
  kAnd,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kShiftLeft,
  kShiftRight,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kRemainder,
};

struct OperatorEntry {
  std::string_view symbol;
  int precedence;  // higher binds tighter
  Operator op;
};

constexpr OperatorEntry kOperators[] = {
    {"||", 1, Operator::kLogicalOr},
    {"&&", 2, Operator::kLogicalAnd},
    {"|", 3, Operator::kOr},
    {"^", 4, Operator::kXor},
    {"&", 5, Operator::kAnd},
    {"==", 6, Operator::kEqual},
    {"!=", 6, Operator::kNotEqual},
    {"<", 7, Operator::kLess},
    {"<=", 7, Operator::kLessEqual},
    {">", 7, Operator::kGreater},
    {">=", 7, Operator::kGreaterEqual},
    {"<<", 8, Operator::kShiftLeft},
    {">>", 8, Operator::kShiftRight},
    {"+", 9, Operator::kAdd},
    {"-", 9, Operator::kSubtract},
    {"*", 10, Operator::kMultiply},
    {"/", 10, Operator::kDivide},
    {"%", 10, Operator::kRemainder},
};

const OperatorEntry* FindOperator(const Reader& reader) {
  static constexpr std::string_view kEnds = ",;}])";  // what nearly always comes, and is none
  if (reader.token().kind != Token::Kind::kPunctuation) return nullptr;
  if (kEnds.find(reader.token().text[0]) != std::string_view::npos) return nullptr;
  for (const OperatorEntry& entry : kOperators) {
    if (reader.token().text == entry.symbol) return &entry;
  }
  return nullptr;
}

Constant MakeInteger(uint64_t bits, bool is_unsigned) {
  Constant result;
  result.bits = bits;
  result.is_unsigned = is_unsigned;
  return result;
}

Constant MakeDouble(double value) {
  Constant result;
  result.is_float = true;
  result.bits = std::bit_cast<uint64_t>(value);
  return result;
}

bool IsTrue(const Constant& constant) {
  return constant.is_float ? constant.AsDouble() != 0 : constant.bits != 0;
}

// False: the operator does not take floats.
bool ApplyFloat(Operator op, double a, double b, Constant* result) {
  switch (op) {
    case Operator::kAdd:
      *result = MakeDouble(a + b);
      return true;
    case Operator::kSubtract:
      *result = MakeDouble(a - b);
      return true;
    case Operator::kMultiply:
      *result = MakeDouble(a * b);
      return true;
    case Operator::kDivide:
      *result = MakeDouble(a / b);
      return true;
    default:
      return false;
  }
}

// b is not 0. Signed division that would overflow wraps.
uint64_t Divide(uint64_t a, uint64_t b, bool is_unsigned, bool remainder) {
  if (is_unsigned) return remainder ? a % b : a / b;
  if (b == UINT64_MAX) return remainder ? 0 : uint64_t{0} - a;
  const int64_t x = static_cast<int64_t>(a);
  const int64_t y = static_cast<int64_t>(b);
  return static_cast<uint64_t>(remainder ? x % y : x / y);
}

uint64_t Compare(Operator op, uint64_t a, uint64_t b, bool is_unsigned) {
  // Flipping the sign bit makes the unsigned order that of signed numbers.
  const uint64_t flip = is_unsigned ? 0 : uint64_t{1} << 63;
  a ^= flip;
  b ^= flip;
  switch (op) {
    case Operator::kLess:
      return a < b;
    case Operator::kLessEqual:
      return a <= b;
    case Operator::kGreater:
      return a > b;
    case Operator::kGreaterEqual:
      return a >= b;
    case Operator::kEqual:
      return a == b;
    default:
      return a != b;
  }
}

uint64_t Shift(Operator op, uint64_t a, uint64_t by, bool is_unsigned) {
  if (op == Operator::kShiftLeft) return by > 63 ? 0 : a << by;
  if (is_unsigned) return by > 63 ? 0 : a >> by;
  return static_cast<uint64_t>(static_cast<int64_t>(a) >> (by > 63 ? 63 : by));
}

Constant ApplyInteger(Operator op, const Constant& a, const Constant& b) {
  const bool is_unsigned = a.is_unsigned || b.is_unsigned;
  switch (op) {
    case Operator::kLogicalOr:
      return MakeInteger(a.bits != 0 || b.bits != 0, false);
    case Operator::kLogicalAnd:
      return MakeInteger(a.bits != 0 && b.bits != 0, false);
    case Operator::kOr:
      return MakeInteger(a.bits | b.bits, is_unsigned);
    case Operator::kXor:
      return MakeInteger(a.bits ^ b.bits, is_unsigned);
    case Operator::kAnd:
      return MakeInteger(a.bits & b.bits, is_unsigned);
    case Operator::kShiftLeft:
    case Operator::kShiftRight:
      return MakeInteger(Shift(op, a.bits, b.bits, a.is_unsigned), a.is_unsigned);
    case Operator::kAdd:
      return MakeInteger(a.bits + b.bits, is_unsigned);
    case Operator::kSubtract:
      return MakeInteger(a.bits - b.bits, is_unsigned);
    case Operator::kMultiply:
      return MakeInteger(a.bits * b.bits, is_unsigned);
    case Operator::kDivide:
    case Operator::kRemainder:
      return MakeInteger(Divide(a.bits, b.bits, is_unsigned, op == Operator::kRemainder),
                         is_unsigned);
    default:
      return MakeInteger(Compare(op, a.bits, b.bits, is_unsigned), false);
  }
}

absl::Status Apply(const Reader& reader, const OperatorEntry& entry, const Constant& a,
                   const Constant& b, Constant* result) {
  if (a.is_float || b.is_float) {
    if (ApplyFloat(entry.op, a.AsDouble(), b.AsDouble(), result)) return absl::OkStatus();
    return reader.Error(
        absl::StrCat("'", Av(entry.symbol), "' does not take floating-point numbers"));
  }
  const bool divides = entry.op == Operator::kDivide || entry.op == Operator::kRemainder;
  if (divides && b.bits == 0) return reader.Error("a constant expression divides by zero");
  *result = ApplyInteger(entry.op, a, b);
  return absl::OkStatus();
}

Constant Negate(const Constant& constant) {
  Constant result = constant;
  if (constant.is_float) {
    result.bits ^= uint64_t{1} << (constant.single ? 31 : 63);
  } else {
    result.bits = uint64_t{0} - constant.bits;
  }
  return result;
}

// Every recursion goes through Unary or Conditional, which count.
class Expression {
 public:
  explicit Expression(Reader* reader) : reader_(reader) {}

  absl::Status Conditional(Constant* result) {
    const Nesting nesting(reader_);
    ASSAY_RETURN_IF_ERROR(nesting.Check());
    ASSAY_RETURN_IF_ERROR(Binary(1, result));
    if (!reader_->Accept("?")) return absl::OkStatus();
    Constant yes;
    Constant no;
    ASSAY_RETURN_IF_ERROR(Conditional(&yes));
    ASSAY_RETURN_IF_ERROR(reader_->Expect(":"));
    ASSAY_RETURN_IF_ERROR(Conditional(&no));
    *result = IsTrue(*result) ? yes : no;
    return absl::OkStatus();
  }

 private:
  absl::Status Binary(int precedence, Constant* result) {
    ASSAY_RETURN_IF_ERROR(Unary(result));
    for (const OperatorEntry* entry = FindOperator(*reader_);
         entry != nullptr && entry->precedence >= precedence; entry = FindOperator(*reader_)) {
      reader_->Advance();
      const Constant left = *result;
      Constant right;
      ASSAY_RETURN_IF_ERROR(Binary(entry->precedence + 1, &right));
      ASSAY_RETURN_IF_ERROR(Apply(*reader_, *entry, left, right, result));
    }
    return absl::OkStatus();
  }

  absl::Status Unary(Constant* result) {
    const Nesting nesting(reader_);
    ASSAY_RETURN_IF_ERROR(nesting.Check());
    if (reader_->Accept("+")) return Unary(result);
    if (reader_->Accept("-")) {
      ASSAY_RETURN_IF_ERROR(Unary(result));
      *result = Negate(*result);
      return absl::OkStatus();
    }
    if (reader_->Accept("!")) {
      ASSAY_RETURN_IF_ERROR(Unary(result));
      *result = MakeInteger(IsTrue(*result) ? 0 : 1, false);
      return absl::OkStatus();
    }
    if (reader_->Accept("~")) {
      ASSAY_RETURN_IF_ERROR(Unary(result));
      if (result->is_float) return reader_->Error("'~' does not take floating-point numbers");
      result->bits = ~result->bits;
      return absl::OkStatus();
    }
    if (reader_->Accept("(")) return Parenthesis(result);
    return Literal(result);
  }

  // Behind the opening one: a cast and its operand, or an expression.
  absl::Status Parenthesis(Constant* result) {
    if (reader_->Is(".s64") || reader_->Is(".u64")) {
      const bool is_unsigned = reader_->Is(".u64");
      reader_->Advance();
      ASSAY_RETURN_IF_ERROR(reader_->Expect(")"));
      ASSAY_RETURN_IF_ERROR(Unary(result));
      if (result->is_float) return reader_->Error("a floating-point number cannot be cast");
      result->is_unsigned = is_unsigned;
      return absl::OkStatus();
    }
    ASSAY_RETURN_IF_ERROR(Conditional(result));
    return reader_->Expect(")");
  }

  absl::Status Literal(Constant* result) {
    const Token& token = reader_->token();
    if (token.kind == Token::Kind::kInteger) {
      *result = MakeInteger(token.bits, token.is_unsigned);
    } else if (token.kind == Token::Kind::kFloat) {
      result->is_float = true;
      result->single = token.single;
      result->is_unsigned = false;
      result->bits = token.bits;
    } else if (reader_->Is("WARP_SZ")) {
      *result = MakeInteger(kWarpSize, false);
    } else {
      return reader_->Expected("a constant");
    }
    reader_->Advance();
    return absl::OkStatus();
  }

  Reader* reader_;
};

}  // namespace

double Constant::AsDouble() const {
  if (!is_float) {
    return is_unsigned ? static_cast<double>(bits)
                       : static_cast<double>(static_cast<int64_t>(bits));
  }
  if (single) return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  return std::bit_cast<double>(bits);
}

absl::Status ParseConstant(Reader* reader, Constant* constant) {
  *constant = Constant();
  return Expression(reader).Conditional(constant);
}

absl::Status ParseIntegerConstant(Reader* reader, std::string_view what, int64_t least,
                                  int64_t most, int64_t* value) {
  const int line = reader->line();
  Constant constant;
  ASSAY_RETURN_IF_ERROR(ParseConstant(reader, &constant));
  if (constant.is_float) {
    return Reader::ErrorAt(line, absl::StrCat(Av(what), " must be an integer"));
  }
  const int64_t result = static_cast<int64_t>(constant.bits);
  if ((constant.is_unsigned && result < 0) || result < least || result > most) {
    return Reader::ErrorAt(line, absl::StrCat(Av(what), " is outside of ", least, " to ", most));
  }
  *value = result;
  return absl::OkStatus();
}

}  // namespace assay::emulator
