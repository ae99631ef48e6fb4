#include "client/audit/margins.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "client/audit/generate.h"

namespace assay {

std::map<std::string, double> Margins(const v1::Problem& problem, const v1::Outcome& outcome) {
  std::map<std::string, double> margins;
  for (const v1::WorkloadResult& result : outcome.workload_results()) {
    for (const v1::OutputCheck& check : result.verification().outputs()) {
      for (const v1::Tensor& tensor : problem.tensors()) {
        if (tensor.name() != check.tensor()) continue;
        const v1::TolerancePolicy& tolerance = ToleranceOf(problem, tensor);
        double off = check.wrong_count() > 0 ? std::numeric_limits<double>::infinity() : 0;
        if (tolerance.kind() == v1::TolerancePolicy::SCALED) {
          off = std::max(check.relative_l2() / tolerance.relative_l2_max(),
                         check.element_error_max() / tolerance.element_max());
          if (std::isnan(off)) off = std::numeric_limits<double>::infinity();
        }
        double& margin = margins.try_emplace(check.tensor(), 0).first->second;
        margin = std::max(margin, off);
      }
    }
  }
  return margins;
}

double Margin(const v1::Problem& problem, const v1::Outcome& outcome) {
  const std::map<std::string, double> margins = Margins(problem, outcome);
  double margin = margins.empty() ? std::numeric_limits<double>::infinity() : 0;
  for (const auto& [tensor, off] : margins) margin = std::max(margin, off);
  return margin;
}

}  // namespace assay
