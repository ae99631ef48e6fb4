// What a workload costs at least, by the problem's work model.
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "assay/v1/problem.pb.h"
#include "base/status.h"
#include "base/strings.h"
#include "kernels/problem.h"
#include "kernels/text.h"

namespace assay {
namespace {

// `fallback` when the expression is empty. Costs are never negative.
absl::StatusOr<double> Cost(const std::string& expression, std::string_view field,
                            const ValueMap& axes, double fallback) {
  if (expression.empty()) return fallback;
  const auto value = EvaluateExpression(expression, axes);
  if (!value.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("work.", Av(field), ": ", value.status().message()));
  }
  if (*value < 0) {
    return absl::InvalidArgumentError(absl::StrCat("work.", Av(field), " ", Quoted(expression),
                                                   " is ", *value, "; it must not be negative"));
  }
  return static_cast<double>(*value);
}

}  // namespace

absl::StatusOr<WorkCost> ComputeWorkCost(const v1::Problem& problem,
                                         const ResolvedWorkload& workload) {
  double input_bytes = 0;
  double output_bytes = 0;
  for (const TensorShape& tensor : workload.tensors) {
    (tensor.is_output ? output_bytes : input_bytes) += static_cast<double>(tensor.bytes);
  }
  const v1::WorkModel& work = problem.work();
  WorkCost out;
  out.unit = work.unit();
  ASSAY_ASSIGN_OR_RETURN(out.operations, Cost(work.operations(), "operations", workload.axes, 0.0));
  ASSAY_ASSIGN_OR_RETURN(out.bytes_read,
                         Cost(work.bytes_read(), "bytes_read", workload.axes, input_bytes));
  ASSAY_ASSIGN_OR_RETURN(out.bytes_written,
                         Cost(work.bytes_written(), "bytes_written", workload.axes, output_bytes));
  out.footprint_bytes = input_bytes + output_bytes;
  return out;
}

}  // namespace assay
