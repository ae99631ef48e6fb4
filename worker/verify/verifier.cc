#include "worker/verify/verifier.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "assay/internal/v1/runner.pb.h"
#include "assay/v1/problem.pb.h"
#include "base/random.h"
#include "base/status.h"
#include "worker/verify/carried_state.h"
#include "worker/verify/dependence.h"
#include "worker/verify/knock_out.h"
#include "worker/verify/precision.h"

namespace assay {
namespace {

// Calls on the same input after a wrong one, to tell a wrong candidate from an unsteady one.
constexpr size_t kRetriesAfterWrong = 2;
// Calls on the first case of a workload; on an emulated device in as many orders.
constexpr size_t kFirstCaseCalls = 2;
constexpr size_t kFirstCaseOrders = 3;

struct PlannedCase {
  InputCaseSpec spec;
  std::string label;
  uint64_t draw = 0;
  bool first = false;  // called more than once on the same input
};

// Of the cases that every problem has alike (scales and structures), a large workload is shown a
// drawn few; which, nobody knows before.
constexpr size_t kDrawnCases = 3;
constexpr size_t kDrawnCasesVerifyOnly = 1;  // beside x1 alone
// A workload up to this size is shown all cases: a call costs no more than its handshake. On an
// emulated device it costs far more.
constexpr double kSmallOperations = 1e6;
constexpr double kSmallBytes = 256 << 10;
constexpr double kSmallEmulatedScale = 1.0 / 32;

bool IsSmall(const LoadedWork& work, bool is_emulated) {
  const absl::StatusOr<WorkCost> cost = ComputeWorkCost(work.problem(), work.workload());
  const double scale = is_emulated ? kSmallEmulatedScale : 1;
  return cost.ok() && cost->operations <= scale * kSmallOperations &&
         cost->footprint_bytes <= scale * kSmallBytes;
}

std::vector<InputCaseSpec> ChooseCases(const LoadedWork& work, const VerifyOptions& options,
                                       bool is_emulated) {
  std::vector<InputCaseSpec> specs = InputBattery(work.problem());
  if (!options.battery) specs.resize(1);
  if (!options.battery || IsSmall(work, is_emulated)) return specs;
  const bool verify_only = work.workload().verify_only;
  // A problem states cases of its own since something hangs on them.
  const bool own_cases = !verify_only || IsSmall(work, /*is_emulated=*/false);
  std::vector<size_t> drawn;
  std::vector<bool> keep(specs.size(), false);
  for (size_t i = 0; i < specs.size(); ++i) {
    if (IsDrawnInputCase(specs[i])) {
      drawn.push_back(i);
    } else {
      keep[i] = i == 0 || own_cases;
    }
  }
  Random random(DeriveSeed(options.nonce, absl::StrCat("cases ", work.workload().name), 0));
  const size_t wanted = verify_only ? kDrawnCasesVerifyOnly : kDrawnCases;
  for (size_t count = 0; count < wanted && !drawn.empty(); ++count) {
    const size_t at = random.Below(drawn.size());
    keep[drawn[at]] = true;
    drawn.erase(drawn.begin() + static_cast<std::ptrdiff_t>(at));
  }
  std::vector<InputCaseSpec> chosen;
  for (size_t i = 0; i < specs.size(); ++i) {
    if (keep[i]) chosen.push_back(std::move(specs[i]));
  }
  return chosen;
}

std::vector<PlannedCase> PlanCases(const LoadedWork& work, const VerifyOptions& options,
                                   bool is_emulated) {
  std::vector<InputCaseSpec> specs = ChooseCases(work, options, is_emulated);
  std::vector<PlannedCase> cases;
  for (InputCaseSpec& spec : specs) {
    PlannedCase planned;
    planned.label = spec.name;
    planned.first = cases.empty();
    planned.spec = std::move(spec);
    cases.push_back(std::move(planned));
  }
  // A candidate that answers every call with its first result must meet a second content.
  if (options.battery && cases.size() == 1) {
    PlannedCase again = cases[0];
    again.draw = 1;
    again.first = false;
    again.label = absl::StrCat(again.label, " redrawn");
    cases.push_back(std::move(again));
  }
  return cases;
}

// The order of call `call` on one case. A workload begins with the natural one.
uint64_t OrderOf(const VerifyOptions& options, const LoadedWork& work, const PlannedCase& planned,
                 size_t call) {
  if (planned.first && call == 0) return 0;
  return DeriveSeed(options.nonce, absl::StrCat("order ", work.workload().name, planned.label),
                    call);
}

// One case after its base was drawn.
VerifyResult RunCase(LoadedWork* work, const VerifyOptions& options, const PlannedCase& planned,
                     uint64_t input_seed, internal::v1::RunnerWorkloadReport* report) {
  v1::Verification* const record = report->mutable_verification();
  GuestSession& candidate = work->candidate();
  const bool has_orders = candidate.has_conditions();
  const PresentedCase presented = {planned.label, input_seed};
  OrderCheck orders(work, presented);
  VerifyResult result;
  result.input_case = planned.label;
  work->Present(nullptr);
  bool seen_right = false;
  bool seen_wrong = false;
  size_t calls = !planned.first ? 1 : has_orders ? kFirstCaseOrders : kFirstCaseCalls;
  for (size_t call = 0; call < calls && !(seen_right && seen_wrong); ++call) {
    CallConditions conditions;
    conditions.order = OrderOf(options, *work, planned, call);
    candidate.SetConditions(conditions);
    result.step = work->Call(GuestCache::kLeave, nullptr);
    if (result.step != Step::kDone) return result;
    if (planned.first && call == 0 && candidate.observed() != nullptr) {
      *report->mutable_observed() = *candidate.observed();
    }
    const OutputVerdict verdict = work->Compare(record);
    if (has_orders) orders.Note(conditions.order, verdict.right);
    (verdict.right ? seen_right : seen_wrong) = true;
    if (verdict.right) {
      work->RememberOutputs(absl::StrCat("verification ", planned.label));
    } else {
      if (result.reason.empty()) result.reason = verdict.reason;
      if (call == 0) calls = 1 + kRetriesAfterWrong;
    }
  }
  result.right = !seen_wrong;
  // Further calls write other outputs.
  if (result.right && planned.draw == 0) GatherPrecision(planned.spec.name, work, report);
  result.step = orders.Conclude(report);
  result.nondeterministic = seen_wrong && (seen_right || orders.right_serially());
  if (result.step != Step::kDone || !result.right || !planned.first) return result;
  // Where nothing is approximate nothing can err.
  if (report->observed().special_operations() > 0) {
    result.step = CheckApproximations(work, presented, report);
  }
  return result;
}

// What can be asked of a candidate on an emulated device after its first case was right: about its
// launches, its clocks, and what its variables carry from call to call. The base is lost.
absl::StatusOr<VerifyResult> CheckState(LoadedWork* work, const VerifyOptions& options,
                                        VerifyResult result, uint64_t input_seed,
                                        internal::v1::RunnerWorkloadReport* report) {
  const CandidateTraits* const traits = work->candidate().traits();
  if (traits == nullptr) return result;
  const PresentedCase presented = {result.input_case, input_seed};
  ASSAY_ASSIGN_OR_RETURN(result.step, FindIdleLaunches(work, presented, report));
  if (result.step != Step::kDone) return result;
  if (traits->reads_clock) {
    const uint64_t seed =
        DeriveSeed(options.nonce, absl::StrCat("clock ", work->workload().name), 0);
    ASSAY_ASSIGN_OR_RETURN(result.step, CheckClocks(work, presented, seed, report));
    if (result.step != Step::kDone) return result;
  }
  if (!traits->has_variables) return result;
  CarriedStateCheck state(work, options.nonce);
  const int call_count = CarriedStateCheck::CallCount(report->observed().warp_instructions());
  ASSAY_ASSIGN_OR_RETURN(result.step, state.Run(call_count, report));
  if (result.step != Step::kDone || state.wrong_reason().empty()) return result;
  result.right = false;
  result.reason = state.wrong_reason();
  result.input_case = absl::StrCat(result.input_case, " on further contents");
  (void)work->Compare(report->mutable_verification());
  return result;
}

}  // namespace

absl::StatusOr<VerifyResult> VerifyWork(LoadedWork* work, const VerifyOptions& options,
                                        internal::v1::RunnerWorkloadReport* report) {
  v1::Verification* const record = report->mutable_verification();
  VerifyResult result;
  const bool is_emulated = work->candidate().has_conditions();
  for (const PlannedCase& planned : PlanCases(*work, options, is_emulated)) {
    const uint64_t seed =
        DeriveSeed(options.nonce, absl::StrCat("verify ", work->workload().name), planned.draw);
    ASSAY_ASSIGN_OR_RETURN(result.step, work->DrawBase(planned.spec, seed));
    result.input_case = planned.label;
    if (result.step != Step::kDone) return result;
    if (record->input_fingerprint().empty()) {
      record->set_input_fingerprint(work->InputFingerprint());
    }
    record->add_cases(planned.label);
    result = RunCase(work, options, planned, seed, report);
    if (result.step == Step::kDone && result.right && planned.first) {
      ASSAY_ASSIGN_OR_RETURN(result, CheckState(work, options, result, seed, report));
    }
    if (result.step != Step::kDone || !result.right) {
      record->set_failed_case(result.input_case);
      return result;
    }
    if (!planned.first && report->idle_launches_size() > 0) {
      ASSAY_ASSIGN_OR_RETURN(result.step, ConfirmIdleLaunches(work, report));
      if (result.step != Step::kDone) return result;
    }
  }
  record->set_passed(true);
  return result;
}

}  // namespace assay
