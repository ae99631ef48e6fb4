#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "assay/v1/problem.pb.h"
#include "base/limits.h"
#include "base/status.h"
#include "base/strings.h"
#include "kernels/inputs/integer_range.h"
#include "kernels/inputs/structure.h"
#include "kernels/problem_validate.h"
#include "kernels/text.h"

namespace assay::validate {
namespace {

bool IsFloating(v1::DataType dtype) {
  return dtype == v1::F32 || dtype == v1::F64 || dtype == v1::F16 || dtype == v1::BF16;
}

// Largest finite value.
double MaxOf(v1::DataType dtype) {
  switch (dtype) {
    case v1::F64:
      return std::numeric_limits<double>::max();
    case v1::F16:
      return 65504.0;
    case v1::BF16:
      return 0x1.fep127;
    default:
      return std::numeric_limits<float>::max();
  }
}

absl::Status CheckFloatingDistribution(v1::DataType dtype, double low, double high,
                                       double reach_factor, std::string_view shape) {
  if (!IsFloating(dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat("distribution: ", Av(shape),
                     " is for floating types; use uniform_int or packed_codes2 for integers"));
  }
  const double reach = std::max(std::fabs(low), std::fabs(high)) * reach_factor;
  if (!(reach <= MaxOf(dtype))) {  // also for NaN
    return absl::InvalidArgumentError(absl::StrCat("distribution: ", Av(shape), " reaches ", reach,
                                                   ", but the type ends at ", MaxOf(dtype),
                                                   "; choose a smaller range"));
  }
  return absl::OkStatus();
}

// The parts that no axis decides; ResolveWorkload has the rest.
absl::Status CheckUniformInt(v1::DataType dtype, const v1::Distribution::UniformInt& integers,
                             const std::set<std::string>& axes) {
  if (integers.high_expression().empty()) {
    return ResolveIntegerRange(integers, static_cast<DataType>(dtype), {}).status();
  }
  if (integers.high() != 0) {
    return absl::InvalidArgumentError(
        "distribution: uniform_int has high and high_expression; give one of them");
  }
  return Annotate(CheckExpression(integers.high_expression(), axes),
                  "distribution: high_expression");
}

absl::Status CheckDistribution(v1::DataType dtype, const v1::Distribution& distribution,
                               bool scalable, const std::set<std::string>& axes) {
  const double factor = scalable ? 3.0 : 1.0;
  switch (distribution.kind_case()) {
    case v1::Distribution::kNormal: {
      const auto& normal = distribution.normal();
      if (!(normal.stddev() >= 0)) {
        return absl::InvalidArgumentError("distribution: stddev must not be negative");
      }
      // The generator's tail ends below 7 standard deviations.
      return CheckFloatingDistribution(dtype, normal.mean() - 7 * normal.stddev(),
                                       normal.mean() + 7 * normal.stddev(), factor, "normal");
    }
    case v1::Distribution::kUniform: {
      const auto& uniform = distribution.uniform();
      if (!(uniform.low() < uniform.high())) {
        return absl::InvalidArgumentError(absl::StrCat("distribution: uniform from ", uniform.low(),
                                                       " to ", uniform.high(),
                                                       " is empty; it needs low < high"));
      }
      // Twice: high - low is computed in the type.
      return CheckFloatingDistribution(dtype, uniform.low(), uniform.high(), 2 * factor, "uniform");
    }
    case v1::Distribution::kUniformInt:
      return CheckUniformInt(dtype, distribution.uniform_int(), axes);
    case v1::Distribution::kPackedCodes2: {
      const int code_max = distribution.packed_codes2().code_max();
      if (dtype != v1::U8 || code_max < 1 || code_max > 3) {
        return absl::InvalidArgumentError(absl::StrCat(
            "distribution: packed_codes2 is for U8 and has code_max 1 to 3, not ", code_max));
      }
      return absl::OkStatus();
    }
    case v1::Distribution::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      "distribution: set normal, uniform, uniform_int or packed_codes2");
}

absl::Status CheckTolerance(const v1::Tensor& tensor) {
  const v1::TolerancePolicy& policy = tensor.tolerance();
  if (policy.kind() == v1::TolerancePolicy::BITWISE) return absl::OkStatus();
  if (policy.kind() != v1::TolerancePolicy::SCALED) {
    return absl::InvalidArgumentError("tolerance.kind: set SCALED or BITWISE");
  }
  if (!IsFloating(tensor.dtype())) {
    return absl::InvalidArgumentError("tolerance.kind: an integer output is always BITWISE");
  }
  for (const double bound : {policy.relative_l2_max(), policy.element_max()}) {
    if (!(bound > 0 && bound < 1)) {
      return absl::InvalidArgumentError(
          absl::StrCat("tolerance: relative_l2_max and element_max must lie between 0 and 1, but "
                       "one is ",
                       bound));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckInput(const v1::Tensor& tensor, const std::set<std::string>& axes) {
  if (tensor.has_tolerance()) {
    return absl::InvalidArgumentError("tolerance: only outputs have one; remove it");
  }
  if (tensor.scalable() && !IsFloating(tensor.dtype())) {
    return absl::InvalidArgumentError("scalable: only floating inputs can be scaled; remove it");
  }
  return CheckDistribution(tensor.dtype(), tensor.distribution(), tensor.scalable(), axes);
}

absl::Status CheckOutput(const v1::Tensor& tensor) {
  if (tensor.has_distribution() || tensor.scalable()) {
    return absl::InvalidArgumentError(
        "distribution and scalable: only inputs have them; remove them");
  }
  return CheckTolerance(tensor);
}

absl::Status CheckTensor(const v1::Tensor& tensor, const std::set<std::string>& axes) {
  if (!v1::DataType_IsValid(tensor.dtype()) || tensor.dtype() == v1::DATA_TYPE_UNSPECIFIED) {
    return absl::InvalidArgumentError("dtype: set F32, F64, I8, U8, I32, F16 or BF16");
  }
  if (tensor.shape().empty() || static_cast<size_t>(tensor.shape_size()) > limits::kDimensionsMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "shape: ", tensor.shape_size(), " dimensions; a tensor has 1 to ", limits::kDimensionsMax));
  }
  for (const std::string& dimension : tensor.shape()) {
    ASSAY_RETURN_IF_ERROR(Annotate(CheckExpression(dimension, axes), "shape"));
  }
  switch (tensor.role()) {
    case v1::Tensor::INPUT:
      return CheckInput(tensor, axes);
    case v1::Tensor::OUTPUT:
      return CheckOutput(tensor);
    default:
      return absl::InvalidArgumentError("role: set INPUT or OUTPUT");
  }
}

const v1::Tensor* FindTensor(const v1::Problem& problem, std::string_view name) {
  for (const v1::Tensor& tensor : problem.tensors()) {
    if (tensor.name() == name) return &tensor;
  }
  return nullptr;
}

// The tensor `name` with `role`, or an error.
absl::StatusOr<const v1::Tensor*> RequireTensor(const v1::Problem& problem, std::string_view name,
                                                v1::Tensor::Role role) {
  const v1::Tensor* tensor = FindTensor(problem, name);
  if (tensor == nullptr || tensor->role() != role) {
    return absl::InvalidArgumentError(
        absl::StrCat("the problem has no ", role == v1::Tensor::INPUT ? "input " : "output ",
                     Quoted(name), "; correct the name or move it to the other list"));
  }
  return tensor;
}

using SeenDimensions = std::set<std::pair<std::string, int>>;

absl::Status CheckPermutation(const v1::Problem& problem,
                              const v1::Transform::Permutation& permutation, SeenDimensions* seen) {
  if (permutation.inputs().empty()) {
    return absl::InvalidArgumentError("permutation: list at least one input");
  }
  for (const v1::Tensor::Role role : {v1::Tensor::INPUT, v1::Tensor::OUTPUT}) {
    const auto& listed = role == v1::Tensor::INPUT ? permutation.inputs() : permutation.outputs();
    for (const auto& entry : listed) {
      ASSAY_ASSIGN_OR_RETURN(const v1::Tensor* tensor,
                             RequireTensor(problem, entry.tensor(), role));
      if (entry.dimension() < 0 || entry.dimension() >= tensor->shape_size()) {
        return absl::InvalidArgumentError(
            absl::StrCat("tensor '", entry.tensor(), "' has no dimension ", entry.dimension(),
                         "; dimensions count from 0 to ", tensor->shape_size() - 1));
      }
      if (!seen->insert({entry.tensor(), entry.dimension()}).second) {
        return absl::InvalidArgumentError(absl::StrCat("dimension ", entry.dimension(), " of '",
                                                       entry.tensor(),
                                                       "' is permuted twice; list it once"));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckScaledTensor(const v1::Tensor& tensor, int power, bool is_signed) {
  if (tensor.dtype() != v1::F32 && tensor.dtype() != v1::F64 && tensor.dtype() != v1::BF16) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor '", tensor.name(),
                     "' is of a type that a power of two does not scale exactly; "
                     "only F32, F64 and BF16 tensors can be listed"));
  }
  if (power == 0 || power < -4 || power > 4) {
    return absl::InvalidArgumentError(absl::StrCat("power of '", tensor.name(), "' is ", power,
                                                   "; it must lie in [-4, 4] and not be 0"));
  }
  if (is_signed && power % 2 != 0 && tensor.role() == v1::Tensor::OUTPUT &&
      tensor.tolerance().kind() == v1::TolerancePolicy::BITWISE) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", tensor.name(),
                     "' is BITWISE and an exact zero keeps its sign when the "
                     "inputs change theirs; remove signed"));
  }
  return absl::OkStatus();
}

absl::Status CheckScale(const v1::Problem& problem, const v1::Transform::PowerOfTwoScale& scale) {
  if (scale.inputs().empty()) {
    return absl::InvalidArgumentError("power_of_two_scale: list at least one input");
  }
  if (scale.exponent_max() < 1 || scale.exponent_max() > 16) {
    return absl::InvalidArgumentError(absl::StrCat(
        "power_of_two_scale: exponent_max is ", scale.exponent_max(), "; it must lie in [1, 16]"));
  }
  std::set<std::string> names;
  for (const v1::Tensor::Role role : {v1::Tensor::INPUT, v1::Tensor::OUTPUT}) {
    for (const auto& entry : role == v1::Tensor::INPUT ? scale.inputs() : scale.outputs()) {
      ASSAY_ASSIGN_OR_RETURN(const v1::Tensor* tensor,
                             RequireTensor(problem, entry.tensor(), role));
      ASSAY_RETURN_IF_ERROR(CheckScaledTensor(*tensor, entry.power(), scale.signed_()));
      if (!names.insert(entry.tensor()).second) {
        return absl::InvalidArgumentError(
            absl::StrCat("power_of_two_scale: '", entry.tensor(), "' is listed twice"));
      }
    }
  }
  return absl::OkStatus();
}

const TensorShape* FindShape(const ResolvedWorkload& workload, std::string_view name) {
  for (const TensorShape& tensor : workload.tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

}  // namespace

absl::Status CheckTensors(const v1::Problem& problem, const std::set<std::string>& axes) {
  std::set<std::string> names = axes;
  bool any_input = false;
  bool any_output = false;
  for (const v1::Tensor& tensor : problem.tensors()) {
    ASSAY_RETURN_IF_ERROR(CheckIdentifier(tensor.name(), "tensor"));
    if (!names.insert(tensor.name()).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "tensor '", tensor.name(), "': another axis or tensor has this name; choose another"));
    }
    ASSAY_RETURN_IF_ERROR(
        Annotate(CheckTensor(tensor, axes), absl::StrCat("tensor '", tensor.name(), "'")));
    any_input = any_input || tensor.role() == v1::Tensor::INPUT;
    any_output = any_output || tensor.role() == v1::Tensor::OUTPUT;
  }
  if (!any_input || !any_output) {
    return absl::InvalidArgumentError("tensors: a problem needs an input and an output");
  }
  return absl::OkStatus();
}

absl::Status CheckInputCases(const v1::Problem& problem, const std::set<std::string>& axes) {
  // These names of the battery are taken; a case with one of the other names replaces the
  // battery's, or leaves it out.
  std::set<std::string> names = {"x1", "x3", "x0.01", "x-1", "min", "max", "extremes"};
  for (const v1::InputCase& input_case : problem.input_cases()) {
    const std::string place = absl::StrCat("input case ", Quoted(input_case.name()));
    if (!IsPlainName(input_case.name()) || !names.insert(input_case.name()).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          place, ": the name must be of [A-Za-z0-9_.-], unique, and not one of the battery's"));
    }
    if (input_case.overrides().empty() && StructureByName(input_case.name()) == Structure::kNone) {
      return absl::InvalidArgumentError(absl::StrCat(place, ": override at least one input"));
    }
    std::set<std::string> overridden;
    for (const auto& entry : input_case.overrides()) {
      const auto tensor = RequireTensor(problem, entry.tensor(), v1::Tensor::INPUT);
      if (!tensor.ok()) return Annotate(tensor.status(), place);
      if (!overridden.insert(entry.tensor()).second) {
        return absl::InvalidArgumentError(
            absl::StrCat(place, ": '", entry.tensor(), "' is overridden twice"));
      }
      ASSAY_RETURN_IF_ERROR(Annotate(
          CheckDistribution((*tensor)->dtype(), entry.distribution(), false, axes), place));
    }
  }
  return absl::OkStatus();
}

namespace {

// Scales compose; together they must stay far from the ends of the exponent range.
absl::Status CheckScaleReach(const v1::Problem& problem) {
  constexpr int kReachMax = 32;
  std::map<std::string, int> reach;
  for (const v1::Transform& transform : problem.transforms()) {
    const auto& scale = transform.power_of_two_scale();
    for (const auto* listed : {&scale.inputs(), &scale.outputs()}) {
      for (const auto& entry : *listed) {
        int& sum = reach[entry.tensor()];
        sum += std::abs(entry.power()) * scale.exponent_max();
        if (sum <= kReachMax) continue;
        return absl::InvalidArgumentError(absl::StrCat(
            "transforms scale '", entry.tensor(), "' by up to 2^", sum, "; the sum of |power| * ",
            "exponent_max over all transforms may be ", kReachMax, " for each tensor"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

namespace {

absl::Status CheckContract(const v1::Problem& problem, const v1::ArithmeticContract& contract) {
  using Rounding = v1::ArithmeticContract;
  std::set<int> roundings;
  for (const int rounding : contract.operand_roundings()) {
    if (!Rounding::OperandRounding_IsValid(rounding) ||
        rounding == Rounding::OPERAND_ROUNDING_UNSPECIFIED || !roundings.insert(rounding).second) {
      return absl::InvalidArgumentError(
          "operand_roundings: list each of TF32, HALF and BFLOAT once at most");
    }
  }
  if (!v1::DataType_IsValid(contract.accumulator()) ||
      contract.accumulator() == v1::DATA_TYPE_UNSPECIFIED) {
    return absl::InvalidArgumentError("accumulator: set the least type that sums are kept in");
  }
  std::set<std::string> seen;
  for (const auto& instead : contract.tolerances()) {
    ASSAY_ASSIGN_OR_RETURN(const v1::Tensor* tensor,
                           RequireTensor(problem, instead.tensor(), v1::Tensor::OUTPUT));
    const std::string place = absl::StrCat("tolerances of '", instead.tensor(), "'");
    if (!seen.insert(instead.tensor()).second) {
      return absl::InvalidArgumentError(place + ": listed twice; list each output once");
    }
    v1::Tensor changed = *tensor;
    *changed.mutable_tolerance() = instead.tolerance();
    ASSAY_RETURN_IF_ERROR(Annotate(CheckTolerance(changed), place));
    // One reference serves all contracts, and the kind decides what it writes.
    if (instead.tolerance().kind() != tensor->tolerance().kind()) {
      return absl::InvalidArgumentError(place + ": the kind must be that of the tensor's own");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckContracts(const v1::Problem& problem) {
  std::set<std::string> names;
  for (const v1::ArithmeticContract& contract : problem.contracts()) {
    const std::string place = absl::StrCat("contract ", Quoted(contract.name()));
    if (!IsContractName(contract.name()) || !names.insert(contract.name()).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(place, ": the name must be unique and of [a-z0-9_-], at most ",
                       limits::kNameBytesMax, " characters"));
    }
    ASSAY_RETURN_IF_ERROR(Annotate(CheckContract(problem, contract), place));
  }
  return absl::OkStatus();
}

absl::Status CheckTransforms(const v1::Problem& problem) {
  SeenDimensions seen;
  for (int i = 0; i < problem.transforms_size(); ++i) {
    const v1::Transform& transform = problem.transforms(i);
    absl::Status status = absl::InvalidArgumentError("set permutation or power_of_two_scale");
    if (transform.has_permutation()) {
      status = CheckPermutation(problem, transform.permutation(), &seen);
    } else if (transform.has_power_of_two_scale()) {
      status = CheckScale(problem, transform.power_of_two_scale());
    }
    if (!status.ok()) return Annotate(status, absl::StrCat("transforms[", i, "]"));
  }
  return CheckScaleReach(problem);
}

absl::Status CheckTransformSizes(const v1::Problem& problem, const ResolvedWorkload& workload) {
  for (int i = 0; i < problem.transforms_size(); ++i) {
    const auto& permutation = problem.transforms(i).permutation();
    int64_t size = 0;
    for (const auto* listed : {&permutation.inputs(), &permutation.outputs()}) {
      for (const auto& entry : *listed) {
        const TensorShape* shape = FindShape(workload, entry.tensor());
        if (shape == nullptr) return absl::InvalidArgumentError("a transform names no tensor");
        const int64_t dim = shape->dims[static_cast<size_t>(entry.dimension())];
        if (size != 0 && dim != size) {
          return absl::InvalidArgumentError(
              absl::StrCat("transforms[", i, "]: dimension ", entry.dimension(), " of '",
                           entry.tensor(), "' has size ", dim, ", but another one in the list has ",
                           size, "; one permutation needs equal sizes"));
        }
        size = dim;
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace assay::validate
