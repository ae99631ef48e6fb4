#include "worker/verify/verifier.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "assay/v1/evaluation.pb.h"
#include "assay/v1/problem.pb.h"
#include "base/status.h"

namespace assay {
namespace {

// Calls on the same input after a wrong one, to tell a wrong candidate from an unsteady one.
constexpr int kRetriesAfterWrong = 2;

struct PlannedCase {
  InputCaseSpec spec;
  std::string label;
  uint64_t draw = 0;
  bool repeat = false;  // call twice on the same input
};

std::vector<PlannedCase> PlanCases(const v1::Problem& problem, bool battery) {
  std::vector<InputCaseSpec> specs = InputBattery(problem);
  if (!battery) specs.resize(1);
  std::vector<PlannedCase> cases;
  for (InputCaseSpec& spec : specs) {
    PlannedCase planned;
    planned.label = spec.name;
    planned.repeat = cases.empty();
    planned.spec = std::move(spec);
    cases.push_back(std::move(planned));
  }
  // A candidate that answers every call with its first result must meet a second content.
  if (battery && cases.size() == 1) {
    PlannedCase again = cases[0];
    again.draw = 1;
    again.repeat = false;
    again.label = absl::StrCat(again.label, " redrawn");
    cases.push_back(std::move(again));
  }
  return cases;
}

// One case after its base was drawn.
VerifyResult RunCase(LoadedWork* work, const PlannedCase& planned, v1::Verification* record) {
  VerifyResult result;
  result.input_case = planned.label;
  work->Present(nullptr);
  bool seen_right = false;
  bool seen_wrong = false;
  int calls_left = planned.repeat ? 2 : 1;
  bool retried = false;
  while (calls_left-- > 0) {
    result.step = work->Call(GuestCache::kLeave, nullptr);
    if (result.step != Step::kDone) return result;
    const OutputVerdict verdict = work->Compare(record);
    if (verdict.right) {
      seen_right = true;
      work->RememberOutputs(absl::StrCat("verification ", planned.label));
      continue;
    }
    seen_wrong = true;
    if (result.reason.empty()) result.reason = verdict.reason;
    if (!seen_right && !retried) {
      retried = true;
      calls_left = kRetriesAfterWrong;
    }
    if (seen_right) break;
  }
  result.right = !seen_wrong;
  result.nondeterministic = seen_wrong && seen_right;
  return result;
}

}  // namespace

absl::StatusOr<VerifyResult> VerifyWork(LoadedWork* work, const VerifyOptions& options,
                                        v1::Verification* record) {
  VerifyResult result;
  for (const PlannedCase& planned : PlanCases(work->problem(), options.battery)) {
    const uint64_t seed =
        DeriveSeed(options.nonce, absl::StrCat("verify ", work->workload().name), planned.draw);
    ASSAY_ASSIGN_OR_RETURN(result.step, work->DrawBase(planned.spec, seed));
    result.input_case = planned.label;
    if (result.step != Step::kDone) return result;
    if (record->input_fingerprint().empty()) {
      record->set_input_fingerprint(work->InputFingerprint());
    }
    record->add_cases(planned.label);
    result = RunCase(work, planned, record);
    if (result.step != Step::kDone || !result.right) {
      record->set_failed_case(planned.label);
      return result;
    }
  }
  record->set_passed(true);
  return result;
}

}  // namespace assay
