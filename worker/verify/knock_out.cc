#include "worker/verify/knock_out.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "assay/internal/v1/runner.pb.h"
#include "base/status.h"

namespace assay {
namespace {

// Of all calls with something left out, of one workload.
constexpr int64_t kWarpInstructionsMax = 2'000'000;

using Outputs = std::vector<std::vector<std::byte>>;

// nullopt in `outputs` when a check ended the call, or something is missing so that it never ended.
absl::StatusOr<Step> CallWithout(LoadedWork* work, int launch, bool keep_variables,
                                 std::optional<Outputs>* outputs) {
  outputs->reset();
  GuestSession& candidate = work->candidate();
  CallConditions conditions;
  conditions.serial = true;
  conditions.left_out_launch = launch;
  conditions.keep_variables = keep_variables;
  candidate.SetConditions(conditions);
  const Step step = work->Call(GuestCache::kLeave, nullptr);
  if (step == Step::kDone) {
    *outputs = work->CopyOutputs();
    return step;
  }
  const std::optional<GuestEnd>& ended = candidate.ended();
  if (launch < 0 || !ended.has_value() || ended->kind == 0) return step;
  ASSAY_RETURN_IF_ERROR(candidate.Revive());
  return Step::kDone;
}

}  // namespace

absl::StatusOr<Step> FindIdleLaunches(LoadedWork* work, const PresentedCase& presented,
                                      internal::v1::RunnerWorkloadReport* report) {
  const CandidateTraits& traits = *work->candidate().traits();
  if (traits.kernels.size() < 2) return Step::kDone;
  std::optional<Outputs> whole;
  ASSAY_ASSIGN_OR_RETURN(Step step, CallWithout(work, -1, false, &whole));
  if (step != Step::kDone) return step;
  const int64_t cost = work->candidate().observed()->warp_instructions();
  const auto launches =
      static_cast<int>(std::min<int64_t>(kWarpInstructionsMax / std::max<int64_t>(1, cost),
                                         static_cast<int64_t>(traits.kernels.size())));
  for (int launch = 0; launch < launches; ++launch) {
    bool idle = true;
    for (const bool keep_variables : {false, true}) {
      if (!idle || (keep_variables && !traits.has_variables)) continue;
      std::optional<Outputs> without;
      ASSAY_ASSIGN_OR_RETURN(step, CallWithout(work, launch, keep_variables, &without));
      if (step != Step::kDone) return step;
      idle = without == whole;
    }
    if (!idle) continue;
    internal::v1::KnockedOutLaunch& out = *report->add_idle_launches();
    out.set_launch(launch);
    out.set_kernel(traits.kernels[static_cast<size_t>(launch)]);
    out.set_input_seed(presented.input_seed);
  }
  return Step::kDone;
}

absl::StatusOr<Step> ConfirmIdleLaunches(LoadedWork* work,
                                         internal::v1::RunnerWorkloadReport* report) {
  std::optional<Outputs> whole;
  ASSAY_ASSIGN_OR_RETURN(Step step, CallWithout(work, -1, false, &whole));
  if (step != Step::kDone) return step;
  for (int i = report->idle_launches_size(); i-- > 0;) {
    std::optional<Outputs> without;
    ASSAY_ASSIGN_OR_RETURN(step,
                           CallWithout(work, report->idle_launches(i).launch(), false, &without));
    if (step != Step::kDone) return step;
    if (without != whole) report->mutable_idle_launches()->DeleteSubrange(i, 1);
  }
  return Step::kDone;
}

}  // namespace assay
