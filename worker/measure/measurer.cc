#include "worker/measure/measurer.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "assay/v1/evaluation.pb.h"
#include "assay/v1/problem.pb.h"
#include "base/status.h"
#include "worker/measure/statistics.h"

namespace assay {
namespace {

constexpr int kEmptyCalls = 64;
constexpr std::string_view kBaseCase = "x1";  // what is measured: the problem's own distributions
constexpr int kWarmupCallsMax = 1'000'000;
// A new base is drawn after so many transforms of the last, when the reference is quick.
constexpr int kCallsPerBase = 16;
constexpr absl::Duration kQuickReference = absl::Milliseconds(5);
// At most one disturbed sample in five is dropped: when more are disturbed, the machine is noisy,
// and a result that hides it would be worse than one that says it.
constexpr double kDiscardRatioMax = 0.2;
constexpr double kLateAnswerNsMin = 1'000;
constexpr double kLateIdleNsMin = 5'000;  // one look at the kernel's word on sleep takes 2 us
constexpr double kLateRatioMin = 0.05;

// Shows the candidate content that it has not seen.
class FreshContent {
 public:
  FreshContent(LoadedWork* work, uint64_t seed) : work_(work), seed_(seed) {}

  absl::StatusOr<Step> PresentNext() {
    const uint64_t seed = DeriveSeed(seed_, "transform", drawn_++);
    ASSAY_ASSIGN_OR_RETURN(DrawnTransform transform,
                           DrawnTransform::Draw(work_->problem(), work_->workload(), seed));
    const bool due = static_cast<int>(transforms_.size()) >= kCallsPerBase &&
                     work_->reference_time() <= kQuickReference;
    // Without a declared transform every content needs its own run of the reference.
    if (transform.is_identity() || due) {
      InputCaseSpec input_case;
      input_case.name = std::string(kBaseCase);
      ASSAY_ASSIGN_OR_RETURN(const Step step,
                             work_->DrawBase(input_case, DeriveSeed(seed_, "base", drawn_)));
      if (step != Step::kDone) return step;
      transforms_.clear();
      base_is_shown_ = transform.is_identity();
    }
    work_->Present(&transform);
    transforms_.push_back(std::move(transform));
    return Step::kDone;
  }

  // What the wrong outputs of the call on the newest content are the right answer to.
  std::string StaleSource(int call) {
    const std::string label = work_->RememberedLabel();
    if (!label.empty()) return label;
    if (!base_is_shown_ && work_->OutputsMatch(nullptr)) return "the warm-up";
    for (size_t i = 0; i + 1 < transforms_.size(); ++i) {
      if (work_->OutputsMatch(&transforms_[i])) {
        return absl::StrCat("timed call ", call - static_cast<int>(transforms_.size() - 1 - i));
      }
    }
    return "";
  }

 private:
  LoadedWork* const work_;
  const uint64_t seed_;
  uint64_t drawn_ = 0;
  bool base_is_shown_ = false;              // the newest content is the base itself
  std::vector<DrawnTransform> transforms_;  // of the present base, the newest last
};

class Measurement {
 public:
  Measurement(LoadedWork* work, const MeasureProtocol& protocol, uint64_t seed,
              v1::Verification* verification, v1::RunnerSamples* samples)
      : work_(work),
        protocol_(protocol),
        seed_(seed),
        content_(work, seed),
        verification_(verification),
        samples_(samples) {}

  absl::StatusOr<MeasureResult> Run() {
    if (work_->base_case() != kBaseCase) {
      InputCaseSpec input_case;
      input_case.name = std::string(kBaseCase);
      ASSAY_ASSIGN_OR_RETURN(const Step step,
                             work_->DrawBase(input_case, DeriveSeed(seed_, "base", 0)));
      if (step != Step::kDone) return End(step);
    }
    if (!MeasureHandshake() || !WarmUp()) return End(Step::kCandidateEnded);
    if (!CheckWarmUp()) return result_;
    work_->RememberOutputs("the warm-up");
    ASSAY_ASSIGN_OR_RETURN(const bool warm, Sample(GuestCache::kWarm, protocol_.warm));
    if (!warm) return result_;
    JudgeLateWork();
    if (result_.late_work) return result_;
    ASSAY_RETURN_IF_ERROR(Sample(GuestCache::kCold, protocol_.cold).status());
    return result_;
  }

 private:
  MeasureResult End(Step step) {
    result_.step = step;
    return result_;
  }

  bool MeasureHandshake() {
    std::vector<double> durations;
    for (int i = 0; i < kEmptyCalls; ++i) {
      const std::optional<CallTiming> timing = work_->candidate().CallEmpty();
      if (!timing.has_value()) return false;
      durations.push_back(timing->duration_ns);
      Note(*timing);
    }
    samples_->set_handshake_ns(Median(std::move(durations)));
    result_.after_empty = TakeNoted();
    return true;
  }

  // Runs until the medians of three windows in a row agree. False when the candidate ended.
  bool WarmUp() {
    const absl::Duration start = work_->clock().Monotonic();
    std::vector<double> medians;
    work_->Present(nullptr);
    int calls = 0;
    while (calls < kWarmupCallsMax) {
      std::vector<double> window;
      for (int i = 0; i < protocol_.warmup_window; ++i, ++calls) {
        CallTiming timing;
        if (work_->CallUnchecked(GuestCache::kWarm, &timing) != Step::kDone) return false;
        window.push_back(timing.duration_ns);
      }
      medians.push_back(Median(std::move(window)));
      const absl::Duration elapsed = work_->clock().Monotonic() - start;
      if (elapsed >= protocol_.warmup_max) break;
      if (elapsed >= protocol_.warmup_min && IsStable(medians)) break;
    }
    samples_->set_warmup_calls(calls);
    return true;
  }

  // Outputs that nobody looked at must not be taken for right answers later.
  bool CheckWarmUp() {
    const OutputVerdict verdict = work_->Compare(verification_);
    if (verdict.right) return true;
    result_.right = false;
    result_.reason = verdict.reason;
    verification_->set_passed(false);
    verification_->set_failed_case("the warm-up");
    return false;
  }

  bool IsStable(const std::vector<double>& medians) const {
    if (medians.size() < 3) return false;
    const auto [low, high] = std::minmax_element(medians.end() - 3, medians.end());
    return *high - *low <= protocol_.warmup_agreement * *low;
  }

  // False when the measurement is over: the candidate ended or was wrong.
  absl::StatusOr<bool> Sample(GuestCache cache, const StoppingParameters& parameters) {
    const std::vector<std::unique_ptr<StoppingRule>> rules = MakeStoppingRules(parameters);
    const absl::Duration start = work_->clock().Monotonic();
    std::vector<double> kept;
    int discarded = 0;
    Stop stop = Stop::kNo;
    while (stop == Stop::kNo) {
      CallTiming timing;
      ASSAY_ASSIGN_OR_RETURN(const bool right, TimedCall(cache, &timing));
      if (!right) return false;
      const bool disturbed = timing.context_switches > 0 || timing.migrations > 0;
      // The first few may go even if the share of so few tries is larger.
      const double tries = std::max(static_cast<double>(kept.size()) + discarded + 1,
                                    parameters.samples_min / (1 - kDiscardRatioMax));
      if (disturbed && discarded + 1 <= kDiscardRatioMax * tries) {
        ++discarded;
        continue;
      }
      if (disturbed) {
        samples_->set_context_switches(samples_->context_switches() + timing.context_switches);
        samples_->set_migrations(samples_->migrations() + timing.migrations);
      }
      kept.push_back(timing.duration_ns);
      if (cache == GuestCache::kWarm) Note(timing);
      const SeriesSoFar series{kept, work_->clock().Monotonic() - start};
      for (const std::unique_ptr<StoppingRule>& rule : rules) {
        if (stop == Stop::kNo) stop = rule->Check(series);
      }
    }
    samples_->set_discarded_count(samples_->discarded_count() + discarded);
    auto* out =
        cache == GuestCache::kWarm ? samples_->mutable_warm_ns() : samples_->mutable_cold_ns();
    out->Add(kept.begin(), kept.end());
    if (cache == GuestCache::kWarm) samples_->set_stop_reason(static_cast<v1::StopReason>(stop));
    return true;
  }

  // One timed call on fresh content, compared. False as for Sample.
  absl::StatusOr<bool> TimedCall(GuestCache cache, CallTiming* timing) {
    ASSAY_ASSIGN_OR_RETURN(result_.step, content_.PresentNext());
    if (result_.step != Step::kDone) return false;
    result_.step = work_->Call(cache, timing);
    if (result_.step != Step::kDone) return false;
    ++call_;
    const OutputVerdict verdict = work_->Compare(verification_);
    if (verdict.right) {
      work_->RememberOutputs(absl::StrCat("timed call ", call_));
      return true;
    }
    std::string stale_source;
    if (verdict.reason == "MISMATCH") {
      stale_source = content_.StaleSource(call_);
      if (stale_source.empty()) result_.step = work_->CheckTransform();
      if (result_.step != Step::kDone) return false;
    }
    result_.right = false;
    result_.reason = verdict.reason;
    result_.failed_timed_call = call_;
    result_.stale_source = std::move(stale_source);
    verification_->set_passed(false);
    verification_->set_failed_case(absl::StrCat("timed call ", call_));
    return false;
  }

  void Note(const CallTiming& timing) {
    answers_ns_.push_back(timing.answer_ns);
    idles_ns_.push_back(timing.idle_ns);
  }

  AfterCall TakeNoted() {
    AfterCall after{Median(std::move(answers_ns_)), Median(std::move(idles_ns_))};
    answers_ns_.clear();
    idles_ns_.clear();
    return after;
  }

  void JudgeLateWork() {
    result_.after = TakeNoted();
    const double duration_ns = Median({samples_->warm_ns().begin(), samples_->warm_ns().end()});
    result_.late_work = IsLateWork(result_.after, result_.after_empty, duration_ns);
  }

  LoadedWork* const work_;
  const MeasureProtocol& protocol_;
  const uint64_t seed_;
  FreshContent content_;
  v1::Verification* const verification_;
  v1::RunnerSamples* const samples_;
  std::vector<double> answers_ns_;
  std::vector<double> idles_ns_;
  int call_ = 0;
  MeasureResult result_;
};

}  // namespace

bool IsLateWork(const AfterCall& after, const AfterCall& after_empty, double duration_ns) {
  const auto is_late = [&](double late_ns, double late_ns_min) {
    return late_ns > late_ns_min && late_ns > kLateRatioMin * (duration_ns + late_ns);
  };
  return is_late(after.answer_ns - after_empty.answer_ns, kLateAnswerNsMin) ||
         is_late(after.idle_ns - after_empty.idle_ns, kLateIdleNsMin);
}

absl::StatusOr<MeasureResult> MeasureWork(LoadedWork* work, const MeasureProtocol& protocol,
                                          uint64_t seed, v1::Verification* verification,
                                          v1::RunnerSamples* samples) {
  return Measurement(work, protocol, seed, verification, samples).Run();
}

}  // namespace assay
