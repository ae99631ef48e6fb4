#include "worker/measure/stopping/stopping_rule.h"

namespace assay {

std::vector<std::unique_ptr<StoppingRule>> MakeStoppingRules(const StoppingParameters& parameters) {
  std::vector<std::unique_ptr<StoppingRule>> rules;
  rules.push_back(MakeConvergedRule(parameters));
  rules.push_back(MakeTimeLimitRule(parameters));
  rules.push_back(MakeSampleLimitRule(parameters));
  return rules;
}

}  // namespace assay
