// The compiled form of an expression: instructions for a stack machine. Flat, so that neither
// evaluation nor destruction recurses, however long the text is.
#ifndef ASSAY_KERNELS_EXPRESSION_PROGRAM_H_
#define ASSAY_KERNELS_EXPRESSION_PROGRAM_H_

#include <cstdint>
#include <vector>

#include "kernels/expression/expression.h"

namespace assay {

enum class OpCode : uint8_t {
  kPush,  // operand: the value
  kLoad,  // operand: index into names
  kNegate,
  kNot,
  kToBool,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kModulo,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kCeilDiv,
  kMin,
  kMax,
  kJump,          // operand: target
  kJumpIfZero,    // pops; operand: target
  kJumpKeepZero,  // operand: target; jumps and keeps the value when it is 0, else pops it
  kJumpKeepOne,   // operand: target; jumps and leaves 1 when the value is not 0, else pops it
};

struct Instruction {
  OpCode op = OpCode::kPush;
  int64_t operand = 0;
};

// Every jump goes forward, so a run ends after at most code.size() steps.
struct Expression::Program {
  std::vector<Instruction> code;
};

}  // namespace assay

#endif  // ASSAY_KERNELS_EXPRESSION_PROGRAM_H_
