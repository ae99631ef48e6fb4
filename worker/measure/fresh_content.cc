#include "worker/measure/fresh_content.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "assay/v1/problem.pb.h"
#include "base/random.h"
#include "base/status.h"

namespace assay {
namespace {

// After a run of the reference, calls that bring the candidate's core back to it: at least one, and
// no more after so long, or so many.
constexpr double kRewarmNs = 1e6;
constexpr int kRewarmCallsMax = 2;
// Contents derived from one base: at least so many, and below so many more.
constexpr int kDerivedCallsMin = 4;
constexpr int kDerivedCallsSpread = 8;
// Where the reference takes longer than this, no more bases than these are drawn unasked.
constexpr absl::Duration kQuickReference = absl::Milliseconds(5);
constexpr uint64_t kSlowBases = 3;

}  // namespace

absl::StatusOr<Step> DrawMeasuredBase(LoadedWork* work, uint64_t seed) {
  InputCaseSpec input_case;
  input_case.name = std::string(kMeasuredCase);
  return work->DrawBase(input_case, seed);
}

absl::StatusOr<Step> FreshContent::PresentNext() {
  const uint64_t seed = DeriveSeed(seed_, "transform", drawn_++);
  ASSAY_ASSIGN_OR_RETURN(DrawnTransform transform,
                         DrawnTransform::Draw(work_->problem(), work_->workload(), seed));
  if (transform.is_identity() || is_new_base_due()) {
    ASSAY_ASSIGN_OR_RETURN(const Step step, DrawBase());
    if (step != Step::kDone) return step;
  } else {
    --calls_left_;
  }
  work_->Present(&transform);
  transforms_.push_back(std::move(transform));
  return Step::kDone;
}

absl::StatusOr<Step> FreshContent::PresentForAlteredCall() {
  const uint64_t seed = DeriveSeed(seed_, "altered content", bases_);
  ASSAY_ASSIGN_OR_RETURN(const DrawnTransform transform,
                         DrawnTransform::Draw(work_->problem(), work_->workload(), seed));
  if (transform.is_identity()) {
    ASSAY_ASSIGN_OR_RETURN(const Step step, DrawMeasuredBase(work_, seed));
    if (step != Step::kDone) return step;
  }
  work_->Present(&transform);
  return Step::kDone;
}

absl::StatusOr<Step> FreshContent::DrawBase() {
  ASSAY_ASSIGN_OR_RETURN(Step step, DrawMeasuredBase(work_, DeriveSeed(seed_, "base", ++bases_)));
  double rewarmed_ns = 0;
  for (int call = 0; call < kRewarmCallsMax && rewarmed_ns < kRewarmNs; ++call) {
    CallTiming timing;
    if (step == Step::kDone) step = work_->CallUnchecked(GuestCache::kWarm, &timing);
    rewarmed_ns += timing.duration_ns;
  }
  transforms_.clear();
  calls_left_ = DrawDerivedCalls();
  return step;
}

int FreshContent::DrawDerivedCalls() const {
  if (bases_ >= kSlowBases && work_->reference_time() > kQuickReference) {
    return std::numeric_limits<int>::max();
  }
  Random random(DeriveSeed(seed_, "derived calls", bases_));
  return kDerivedCallsMin + static_cast<int>(random.Below(kDerivedCallsSpread));
}

std::string FreshContent::StaleSource(int call) {
  const std::string label = work_->RememberedLabel();
  if (!label.empty()) return label;
  for (size_t i = 0; i + 1 < transforms_.size(); ++i) {
    if (work_->OutputsMatch(&transforms_[i])) {
      return absl::StrCat("timed call ", call - static_cast<int>(transforms_.size() - 1 - i));
    }
  }
  return "";
}

}  // namespace assay
