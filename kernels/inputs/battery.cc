#include <algorithm>
#include <string>
#include <vector>

#include "assay/v1/problem.pb.h"
#include "kernels/inputs/inputs.h"
#include "kernels/inputs/structure.h"

namespace assay {

std::vector<InputCaseSpec> InputBattery(const v1::Problem& problem) {
  bool scalable = false;
  bool integer = false;
  for (const v1::Tensor& tensor : problem.tensors()) {
    if (tensor.role() != v1::Tensor::INPUT) continue;
    scalable = scalable || tensor.scalable();
    integer = integer || tensor.distribution().has_uniform_int() ||
              tensor.distribution().has_packed_codes2();
  }
  std::vector<InputCaseSpec> out = {{"x1", -1}};
  if (scalable) {
    for (const char* name : {"x3", "x0.01", "x-1"}) out.push_back({name, -1});
    for (const std::string_view name : StructureNames()) {
      const auto& own = problem.input_cases();
      const bool is_replaced = std::any_of(
          own.begin(), own.end(), [&](const v1::InputCase& one) { return one.name() == name; });
      if (!is_replaced) out.push_back({std::string(name), -1});
    }
  }
  if (integer) {
    for (const char* name : {"min", "max", "extremes"}) out.push_back({name, -1});
  }
  for (int i = 0; i < problem.input_cases_size(); ++i) {
    if (problem.input_cases(i).overrides().empty()) continue;  // left out
    out.push_back({problem.input_cases(i).name(), i});
  }
  return out;
}

bool IsDrawnInputCase(const InputCaseSpec& input_case) {
  static constexpr std::string_view kScales[] = {"x3", "x0.01", "x-1"};
  return input_case.problem_case < 0 &&
         (StructureByName(input_case.name) != Structure::kNone ||
          std::find(std::begin(kScales), std::end(kScales), input_case.name) != std::end(kScales));
}

}  // namespace assay
