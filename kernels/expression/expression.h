// Integer expressions over named values: shapes, constraints, work models, launch plans.
//
// Grammar: 64-bit signed integers; + - * / % (truncating, as in C++); == != < <= > >=; && || !; ?:
// ; unary -; ceil_div(a, b), min(a, b, ...), max(a, b, ...); names. Booleans are 0 and 1; && || ?:
// evaluate lazily. Numbers are decimal without leading zeros and at most INT64_MAX.
#ifndef ASSAY_KERNELS_EXPRESSION_EXPRESSION_H_
#define ASSAY_KERNELS_EXPRESSION_EXPRESSION_H_

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace assay {

using ValueMap = std::map<std::string, int64_t>;

// A parsed expression. Immutable, cheap to copy, thread-safe.
class Expression {
 public:
  struct Program;

  // INVALID_ARGUMENT with the column and what was expected; longer than kExpressionBytesMax or
  // nested deeper than kExpressionDepthMax too.
  static absl::StatusOr<Expression> Parse(std::string_view text);

  // INVALID_ARGUMENT for an unknown name, also in a branch that is not taken; OUT_OF_RANGE for
  // overflow, division by zero and ceil_div by a value <= 0. Takes time linear in the text.
  absl::StatusOr<int64_t> Evaluate(const ValueMap& values) const;
  // The same for `values` in the order of names(), all of them.
  absl::StatusOr<int64_t> Evaluate(std::span<const int64_t> values) const;

  // Names used, each once, sorted.
  const std::vector<std::string>& names() const { return names_; }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::shared_ptr<const Program> program_;
  std::vector<std::string> names_;
};

// Parse and Evaluate in one step.
absl::StatusOr<int64_t> EvaluateExpression(std::string_view text, const ValueMap& values);

}  // namespace assay

#endif  // ASSAY_KERNELS_EXPRESSION_EXPRESSION_H_
