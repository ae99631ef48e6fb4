#include "worker/verify/dependence.h"

#include <optional>
#include <span>

#include "assay/internal/v1/runner.pb.h"
#include "assay/v1/evaluation.pb.h"
#include "assay/v1/problem.pb.h"
#include "base/random.h"
#include "base/status.h"

namespace assay {
namespace {

// Ticks an operation of the second call's clocks: at least so many, and below so many more. A
// device's own lie there, so that a deadline that was made for one does not pass early.
constexpr uint64_t kClockRateMin = 4;
constexpr uint64_t kClockRateSpread = 60;
constexpr int kClockOffsetShift = 20;  // the upper bits stay 0, as of a device that ran for days

}  // namespace

OrderCheck::Difference OrderCheck::Compare() const {
  v1::TolerancePolicy bits;
  bits.set_kind(v1::TolerancePolicy::BITWISE);
  for (size_t i = 0; i < first_outputs_.size(); ++i) {
    const size_t tensor = work_.output_index(i);
    const OutputComparison comparison =
        CompareOutput(bits, work_.workload().tensors[tensor], work_.candidate().Buffer(tensor),
                      first_outputs_[i]);
    if (comparison.passed) continue;
    return {true,
            tensor,
            comparison.first_wrong,
            comparison.wrong_count,
            comparison.first_wrong_want,
            comparison.first_wrong_got};
  }
  return {};
}

void OrderCheck::Note(uint64_t order, bool right) {
  if (first_outputs_.empty()) {
    first_order_ = order;
    first_right_ = right;
    first_outputs_ = work_.CopyOutputs();
    return;
  }
  // The first difference counts, before others the first that makes an output wrong.
  if (difference_.found && (other_right_ != first_right_ || right == first_right_)) return;
  const Difference difference = Compare();
  if (!difference.found) return;
  difference_ = difference;
  other_order_ = order;
  other_right_ = right;
}

Step OrderCheck::CallSerially(uint64_t order) {
  CallConditions conditions;
  conditions.order = order;
  conditions.serial = true;
  work_.candidate().SetConditions(conditions);
  const Step step = work_.Call(GuestCache::kLeave, nullptr);
  v1::Verification unused;
  if (step == Step::kDone && work_.Compare(&unused).right) right_serially_ = true;
  return step;
}

Step OrderCheck::Conclude(internal::v1::RunnerWorkloadReport* report) {
  if (!difference_.found) return Step::kDone;
  Step step = CallSerially(first_order_);
  if (step != Step::kDone) return step;
  first_outputs_ = work_.CopyOutputs();
  step = CallSerially(other_order_);
  if (step != Step::kDone) return step;
  const Difference serial = Compare();
  const Difference& shown = serial.found ? serial : difference_;

  internal::v1::OrderDependence& out = *report->mutable_order_dependence();
  out.set_input_case(presented_.label);
  out.set_input_seed(presented_.input_seed);
  out.set_first_order(first_order_);
  out.set_other_order(other_order_);
  const TensorShape& tensor = work_.workload().tensors[shown.tensor];
  out.set_tensor(tensor.name);
  for (const int64_t index : UnflattenIndex(tensor, shown.element)) out.add_index(index);
  out.set_first_value(shown.first);
  out.set_other_value(shown.other);
  out.set_differing_count(shown.count);
  out.set_wrong(!first_right_ || !other_right_);
  out.set_replayable(serial.found);
  return Step::kDone;
}

Step CheckApproximations(LoadedWork* work, const PresentedCase& presented,
                         internal::v1::RunnerWorkloadReport* report) {
  CallConditions conditions;
  conditions.perturb_approximations = true;
  work->candidate().SetConditions(conditions);
  const Step step = work->Call(GuestCache::kLeave, nullptr);
  if (step != Step::kDone) return step;
  v1::Verification record;  // the errors of this call say nothing of the others
  const OutputVerdict verdict = work->Compare(&record);
  if (verdict.right) return step;
  internal::v1::ApproximationDependence& out = *report->mutable_approximation_dependence();
  out.set_input_case(presented.label);
  out.set_input_seed(presented.input_seed);
  *out.mutable_mismatch() = record.first_mismatch();
  out.set_reason(verdict.reason);
  return step;
}

absl::StatusOr<Step> CheckClocks(LoadedWork* work, const PresentedCase& presented, uint64_t seed,
                                 internal::v1::RunnerWorkloadReport* report) {
  GuestSession& candidate = work->candidate();
  CallConditions conditions;
  conditions.serial = true;
  candidate.SetConditions(conditions);
  Step step = work->Call(GuestCache::kLeave, nullptr);
  if (step != Step::kDone) return step;
  const std::vector<std::vector<std::byte>> outputs = work->CopyOutputs();
  internal::v1::ClockDependence found;
  found.set_thread_instructions(candidate.observed()->thread_instructions());

  Random random(seed);
  conditions.clock_rate = kClockRateMin + random.Below(kClockRateSpread);
  conditions.clock_offset = random() >> kClockOffsetShift;
  candidate.SetConditions(conditions);
  step = work->Call(GuestCache::kLeave, nullptr);
  const std::optional<GuestEnd>& ended = candidate.ended();
  if (step != Step::kDone) {
    // Clocks may show anything, so what a check finds is a fault. One that waits for a time is
    // none.
    if (!ended.has_value() || ended->kind != internal::v1::GuestFault::TIMED_OUT) return step;
    found.set_reason("TIMED_OUT");
    ASSAY_RETURN_IF_ERROR(candidate.Revive());
  } else {
    v1::Verification unused;
    found.set_other_thread_instructions(candidate.observed()->thread_instructions());
    found.set_reason(work->Compare(&unused).reason);
    if (found.other_thread_instructions() == found.thread_instructions() &&
        work->CopyOutputs() == outputs) {
      return Step::kDone;
    }
  }
  found.set_input_case(presented.label);
  found.set_input_seed(presented.input_seed);
  found.set_clock_rate(conditions.clock_rate);
  found.set_clock_offset(conditions.clock_offset);
  *report->mutable_clock_dependence() = found;
  return Step::kDone;
}

}  // namespace assay
