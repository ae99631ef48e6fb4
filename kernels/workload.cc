// From axes to shapes and sizes.
#include <algorithm>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "assay/v1/evaluation.pb.h"
#include "assay/v1/problem.pb.h"
#include "base/limits.h"
#include "base/status.h"
#include "base/strings.h"
#include "kernels/inputs/integer_range.h"
#include "kernels/problem.h"
#include "kernels/text.h"

namespace assay {
namespace {

std::string AxesName(const v1::Problem& problem, const ValueMap& axes) {
  std::vector<std::string> parts;
  for (const v1::Axis& axis : problem.axes()) {
    parts.push_back(absl::StrCat(axis.name(), "=", axes.at(axis.name())));
  }
  return absl::StrJoin(parts, ",");
}

absl::Status ReadAxes(const v1::Problem& problem, const v1::Workload& workload,
                      ResolvedWorkload* out) {
  for (const v1::Axis& axis : problem.axes()) {
    const auto it = workload.axes().find(axis.name());
    if (it == workload.axes().end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("axis '", axis.name(), "' has no value; give every axis of the problem"));
    }
    const int64_t low = axis.min() == 0 ? 1 : axis.min();
    const int64_t high = axis.max() == 0 ? (int64_t{1} << 31) - 1 : axis.max();
    if (it->second < low || it->second > high) {
      return absl::InvalidArgumentError(absl::StrCat("axis '", axis.name(), "' is ", it->second,
                                                     "; it must lie in [", low, ", ", high, "]"));
    }
    out->axes[axis.name()] = it->second;
    out->axis_values.push_back(it->second);
  }
  for (const auto& [name, value] : workload.axes()) {
    if (out->axes.count(name) == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("the problem has no axis ", Quoted(name), "; leave it out"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckConstraints(const v1::Problem& problem, const ResolvedWorkload& workload) {
  for (const std::string& constraint : problem.constraints()) {
    ASSAY_ASSIGN_OR_RETURN(const int64_t holds, EvaluateExpression(constraint, workload.axes));
    if (holds == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("the constraint ", Quoted(constraint), " does not hold; choose other axes"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<TensorShape> ShapeOf(const v1::Tensor& tensor, const ValueMap& axes) {
  TensorShape out;
  out.name = tensor.name();
  out.dtype = static_cast<DataType>(tensor.dtype());
  out.is_output = tensor.role() == v1::Tensor::OUTPUT;
  const auto element_bytes = static_cast<int64_t>(DataTypeSize(out.dtype));
  out.elements = 1;
  for (const std::string& expression : tensor.shape()) {
    ASSAY_ASSIGN_OR_RETURN(const int64_t dim, EvaluateExpression(expression, axes));
    if (dim <= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("dimension ", Quoted(expression), " is ", dim, "; it must be positive"));
    }
    if (__builtin_mul_overflow(out.elements, dim, &out.elements) ||
        out.elements > limits::kTensorBytesMax / element_bytes) {
      return absl::InvalidArgumentError(absl::StrCat("it is larger than ", limits::kTensorBytesMax,
                                                     " bytes; choose smaller axes"));
    }
    out.dims.push_back(dim);
  }
  out.bytes = out.elements * element_bytes;
  if (out.is_output) {
    const bool bitwise = tensor.tolerance().kind() == v1::TolerancePolicy::BITWISE;
    out.reference_element_bytes = bitwise ? element_bytes : 8;
  }
  return out;
}

absl::Status ComputeShapes(const v1::Problem& problem, ResolvedWorkload* out) {
  int64_t bytes = 0;  // at most kTensorsMax * kTensorBytesMax: cannot overflow
  for (const bool outputs : {false, true}) {
    for (const v1::Tensor& tensor : problem.tensors()) {
      if ((tensor.role() == v1::Tensor::OUTPUT) != outputs) continue;
      auto shape = ShapeOf(tensor, out->axes);
      if (!shape.ok()) {
        return Annotate(shape.status(), absl::StrCat("tensor '", tensor.name(), "'"));
      }
      bytes += shape->bytes;
      out->tensors.push_back(std::move(shape).value());
    }
  }
  if (bytes > limits::kWorkloadBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat("the tensors take ", bytes, " bytes; at most ",
                                                   limits::kWorkloadBytesMax,
                                                   " are allowed, so choose smaller axes"));
  }
  return absl::OkStatus();
}

absl::Status CheckRange(const v1::Tensor& tensor, const v1::Distribution& distribution,
                        const ValueMap& axes) {
  if (!distribution.has_uniform_int()) return absl::OkStatus();
  return Annotate(
      ResolveIntegerRange(distribution.uniform_int(), static_cast<DataType>(tensor.dtype()), axes)
          .status(),
      absl::StrCat("tensor '", tensor.name(), "'"));
}

// Ends of distributions may follow from axes.
absl::Status CheckRanges(const v1::Problem& problem, const ValueMap& axes) {
  for (const v1::Tensor& tensor : problem.tensors()) {
    ASSAY_RETURN_IF_ERROR(CheckRange(tensor, tensor.distribution(), axes));
    for (const v1::InputCase& input_case : problem.input_cases()) {
      for (const v1::InputCase::Override& entry : input_case.overrides()) {
        if (entry.tensor() != tensor.name()) continue;
        ASSAY_RETURN_IF_ERROR(Annotate(CheckRange(tensor, entry.distribution(), axes),
                                       absl::StrCat("input case '", input_case.name(), "'")));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ResolvedWorkload> ResolveWorkload(const v1::Problem& problem,
                                                 const v1::Workload& workload) {
  ResolvedWorkload out;
  out.verify_only = workload.verify_only();
  absl::Status status = ReadAxes(problem, workload, &out);
  if (status.ok()) status = CheckConstraints(problem, out);
  if (status.ok()) status = ComputeShapes(problem, &out);
  if (status.ok()) status = CheckRanges(problem, out.axes);
  if (!status.ok()) {
    // Also for an expression that overflows: the axes are at fault.
    const std::string place =
        workload.name().empty() ? "axes" : absl::StrCat("workload ", Quoted(workload.name()));
    return absl::InvalidArgumentError(absl::StrCat(place, ": ", status.message()));
  }
  out.name = workload.name().empty() ? AxesName(problem, out.axes) : workload.name();
  return out;
}

absl::StatusOr<ResolvedWorkload> ResolveSelector(const v1::Problem& problem,
                                                 const v1::WorkloadSelector& selector) {
  if (selector.name().empty()) {
    v1::Workload workload;
    *workload.mutable_axes() = selector.axes();
    return ResolveWorkload(problem, workload);
  }
  if (!selector.axes().empty()) {
    return absl::InvalidArgumentError(absl::StrCat("workload selector ", Quoted(selector.name()),
                                                   " has a name and axes; give one of them"));
  }
  std::vector<std::string> known;
  for (const v1::Workload& workload : problem.workloads()) {
    if (workload.name() == selector.name()) return ResolveWorkload(problem, workload);
    known.push_back(workload.name());
  }
  return ErrorWithReason(absl::StatusCode::kNotFound, "WORKLOAD_NOT_FOUND",
                         absl::StrCat("problem '", ProblemId(problem.name()), "' has no workload ",
                                      Quoted(selector.name()), "; it has ",
                                      absl::StrJoin(known, ", "), ", or give axes as in n=1024"));
}

absl::Status ParseWorkloadSelector(std::string_view text, v1::WorkloadSelector* selector) {
  selector->Clear();
  if (text.find('=') == std::string_view::npos) {
    if (!IsPlainName(text)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "workload ", Quoted(text), " is neither a name nor axes as in rows=64,cols=128"));
    }
    selector->set_name(std::string(text));
    return absl::OkStatus();
  }
  size_t start = 0;
  while (start <= text.size()) {
    const size_t end = std::min(text.find(',', start), text.size());
    const std::string_view part = text.substr(start, end - start);
    start = end + 1;
    const size_t equals = std::min(part.find('='), part.size());
    const std::string axis(part.substr(0, equals));
    const std::string_view digits = part.substr(std::min(equals + 1, part.size()));
    int64_t value = 0;
    const auto [last, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    const bool number = error == std::errc() && last == digits.data() + digits.size();
    if (!number || !CheckIdentifier(axis, "axis").ok()) {
      return absl::InvalidArgumentError(absl::StrCat("workload ", Quoted(text), ": ", Quoted(part),
                                                     " is not of the form axis=integer"));
    }
    if (!selector->mutable_axes()->insert({axis, value}).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("workload ", Quoted(text), ": axis '", axis, "' is given twice"));
    }
  }
  return absl::OkStatus();
}

}  // namespace assay
