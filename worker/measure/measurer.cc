#include "worker/measure/measurer.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "assay/v1/evaluation.pb.h"
#include "base/random.h"
#include "base/status.h"
#include "worker/measure/device_evidence.h"
#include "worker/measure/fresh_content.h"
#include "worker/measure/statistics.h"
#include "worker/measure/time_conservation.h"

namespace assay {
namespace {

// Altered calls come before one in so many timed ones, at random, and before the last ones where
// there were fewer than the least by then.
constexpr uint64_t kTimedCallsPerAltered = 10;
constexpr int kAlteredCallsMin = 3;
constexpr int kWarmupCallsMax = 1'000'000;
// At most one disturbed sample in five is dropped: when more are disturbed, the machine is noisy,
// and a result that hides it would be worse than one that says it.
constexpr double kDiscardRatioMax = 0.2;
// A call without an account is as good as one that hid work. Where these and four in five are such,
// as on a single core, every call counts, and the result says that nothing is known.
constexpr size_t kVoidCallsMin = 16;
constexpr size_t kVoidPerAccounted = 4;
// A busy machine makes two calls that hide nothing differ by more than the limit, now and then.
// Calls that seem to hide work accuse when chance explains so many of them with less than this
// probability: ten in a row on a quiet machine.
constexpr double kChanceMax = 1e-6;
constexpr double kNoiseShareMin = 0.25;
constexpr double kHiddenNsMin = 3'000;
constexpr double kHiddenRatioMin = 0.05;
// The median of many calls tells less work than one of them does: honest candidates stay several
// times below this on a quiet machine.
constexpr double kHiddenMedianNsMin = 1'000;
constexpr size_t kHiddenMedianCallsMin = 20;
constexpr size_t kNewBaseSamplesMin = 3;
constexpr size_t kDerivedSamplesMin = 3;
constexpr double kDerivedRatioMin = 0.05;
constexpr double kDerivedNsMin = 150;

// The probability of at least `hits` in `tries` where each is one with probability `share` in (0,
// 1).
double ChanceOf(int hits, int tries, double share) {
  double sum = 0;
  for (int k = hits; k <= tries; ++k) {
    sum += std::exp(std::lgamma(tries + 1.0) - std::lgamma(k + 1.0) - std::lgamma(tries - k + 1.0) +
                    k * std::log(share) + (tries - k) * std::log1p(-share));
  }
  return sum;
}

class Measurement {
 public:
  Measurement(LoadedWork* work, const MeasureProtocol& protocol, uint64_t seed,
              v1::Verification* verification, v1::RunnerSamples* samples)
      : work_(work),
        protocol_(protocol),
        seed_(seed),
        content_(work, seed),
        random_(DeriveSeed(seed, "altered calls", 0)),
        verification_(verification),
        samples_(samples) {}

  absl::StatusOr<MeasureResult> Run() {
    if (work_->base_case() != kMeasuredCase) {
      ASSAY_ASSIGN_OR_RETURN(result_.step, DrawMeasuredBase(work_, DeriveSeed(seed_, "base", 0)));
      if (result_.step != Step::kDone) return result_;
    }
    if (!WarmUp()) return result_;
    if (!CheckWarmUp()) return result_;
    work_->RememberOutputs("the warm-up");
    ASSAY_ASSIGN_OR_RETURN(const bool warm, SampleWarm());
    if (!warm) return result_;
    ASSAY_ASSIGN_OR_RETURN(const bool cold, Sample(GuestCache::kCold, protocol_.cold));
    samples_->set_elapsed_ns(absl::ToDoubleNanoseconds(last_end_ - first_release_));
    if (cold) ASSAY_RETURN_IF_ERROR(CheckConservation(*samples_));
    if (protocol_.on_device) device_.Fill(disturbed_kept_, samples_->mutable_device());
    return result_;
  }

 private:
  // Runs until the medians of three windows in a row agree. False when the candidate ended.
  bool WarmUp() {
    const absl::Duration start = work_->clock().Monotonic();
    double calls_ns = 0;
    std::vector<double> medians;
    work_->Present(nullptr);
    int calls = 0;
    while (calls < kWarmupCallsMax) {
      std::vector<double> window;
      for (int i = 0; i < protocol_.warmup_window; ++i, ++calls) {
        CallTiming timing;
        result_.step = work_->CallUnchecked(GuestCache::kWarm, &timing);
        if (result_.step != Step::kDone) return false;
        window.push_back(timing.duration_ns);
        calls_ns += timing.duration_ns;
        device_.NoteWarmUp(timing);
      }
      medians.push_back(Median(std::move(window)));
      const absl::Duration elapsed = work_->clock().Monotonic() - start;
      if (elapsed >= protocol_.warmup_max) break;
      // What the host does between calls leaves a device idle.
      const absl::Duration warmed = protocol_.on_device ? absl::Nanoseconds(calls_ns) : elapsed;
      if (warmed >= protocol_.warmup_min && IsStable(medians)) break;
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
    if (verdict.reason == "MISMATCH") result_.stale_source = work_->RememberedLabel();
    verification_->set_passed(false);
    verification_->set_failed_case("the warm-up");
    return false;
  }

  bool IsStable(const std::vector<double>& medians) const {
    if (medians.size() < 3) return false;
    const auto [low, high] = std::minmax_element(medians.end() - 3, medians.end());
    return *high - *low <= protocol_.warmup_agreement * *low;
  }

  // Where derived content turns out to be answered faster than new content, what was measured is
  // how well the candidate remembers, or how well the processor does: then every sample is taken
  // again on content of its own. False as for Sample.
  absl::StatusOr<bool> SampleWarm() {
    ASSAY_ASSIGN_OR_RETURN(bool go_on, Sample(GuestCache::kWarm, protocol_.warm));
    if (!go_on || !IsDerivedFaster(new_base_ns_, derived_ns_)) return go_on;
    content_.RequireNewBase(true);
    new_base_ns_.clear();
    samples_->clear_warm_ns();
    ASSAY_ASSIGN_OR_RETURN(go_on, Sample(GuestCache::kWarm, protocol_.warm));
    if (!go_on || !IsDerivedFaster(new_base_ns_, derived_ns_)) return go_on;
    result_.new_base_ns = Median(std::move(new_base_ns_));
    result_.derived_ns = Median(std::move(derived_ns_));
    return true;
  }

  // False when the measurement is over: a guest ended, or the candidate was wrong or hid work.
  absl::StatusOr<bool> Sample(GuestCache cache, const StoppingParameters& parameters) {
    const std::vector<std::unique_ptr<StoppingRule>> rules = MakeStoppingRules(parameters);
    const bool warm = cache == GuestCache::kWarm;
    const absl::Duration start = work_->clock().Monotonic();
    std::vector<double> kept;
    int discarded = 0;  // they hid work, or may have
    int disturbed_discarded = 0;
    account_ = Account();
    Stop stop = Stop::kNo;
    while (stop == Stop::kNo) {
      CallTiming timing;
      std::optional<double> hidden_ns;
      ASSAY_ASSIGN_OR_RETURN(const bool right, TimedCall(cache, &timing, &hidden_ns));
      if (!right) return false;
      if (!protocol_.on_device) {
        const Weighed weighed = Weigh(timing, hidden_ns);
        if (weighed == Weighed::kDecided) return false;
        if (weighed == Weighed::kDiscarded) {
          ++discarded;
          continue;
        }
      }
      device_.Note(timing, cache);
      const bool disturbed =
          timing.context_switches > 0 || timing.migrations > 0 || device_.IsDisturbed(timing);
      // The first few may go even if the share of so few tries is larger.
      const double tries = std::max(static_cast<double>(kept.size()) + disturbed_discarded + 1,
                                    parameters.samples_min / (1 - kDiscardRatioMax));
      if (disturbed && disturbed_discarded + 1 <= kDiscardRatioMax * tries) {
        ++disturbed_discarded;
        continue;
      }
      if (disturbed) {
        samples_->set_context_switches(samples_->context_switches() + timing.context_switches);
        samples_->set_migrations(samples_->migrations() + timing.migrations);
        ++disturbed_kept_;
      }
      kept.push_back(timing.duration_ns);
      if (warm) (content_.is_new_base() ? new_base_ns_ : derived_ns_).push_back(timing.duration_ns);
      const SeriesSoFar series{kept, work_->clock().Monotonic() - start};
      for (const std::unique_ptr<StoppingRule>& rule : rules) {
        if (stop == Stop::kNo) stop = rule->Check(series);
      }
      if (stop != Stop::kNo && warm && new_base_ns_.size() < kNewBaseSamplesMin) {
        content_.RequireNewBase(false);
        stop = Stop::kNo;
      }
      altered_call_is_owed_ = stop != Stop::kNo && warm && altered_calls_ < kAlteredCallsMin;
      if (altered_call_is_owed_) stop = Stop::kNo;
    }
    // Of many, since a busy machine makes any one of them long. On a device an empty call is
    // another kind of call.
    if (!protocol_.on_device) {
      ASSAY_RETURN_IF_ERROR(CheckShortestCall(shortest_call_ns_, shortest_empty_ns_));
    }
    samples_->set_discarded_count(samples_->discarded_count() + discarded + disturbed_discarded);
    auto* out = warm ? samples_->mutable_warm_ns() : samples_->mutable_cold_ns();
    out->Add(kept.begin(), kept.end());
    if (!warm) return true;
    samples_->set_stop_reason(static_cast<v1::StopReason>(stop));
    samples_->set_handshake_ns(Median(account_.handshakes_ns));
    const bool is_drowned = 2 * account_.drowned_calls > static_cast<int>(kept.size());
    if (!IsAccountHopeless() && !is_drowned) {
      result_.empty_outside_ns = Median(account_.outsides_ns);
    }
    return !HidesALittle(Median(kept));
  }

  enum class Weighed { kCounts, kDiscarded, kDecided };

  // Whether a call counts, by the account of what its guest did outside of it. kDecided: so many
  // hid work that it is the result.
  Weighed Weigh(const CallTiming& timing, const std::optional<double>& hidden_ns) {
    if (!hidden_ns.has_value() && !IsAccountHopeless()) {
      ++account_.void_calls;
      return Weighed::kDiscarded;
    }
    Account::Kind& kind = content_.is_new_base() ? account_.new_base : account_.derived;
    if (hidden_ns.has_value()) {
      ++kind.calls;
      account_.all_ns.push_back(*hidden_ns);
    }
    // A call that hid work has no time that counts, however few there are of them.
    if (!hidden_ns.has_value() || !IsHiddenWork(*hidden_ns, timing.duration_ns)) {
      return Weighed::kCounts;
    }
    kind.hidden_ns.push_back(*hidden_ns);
    if (HidesWork(kind)) return Weighed::kDecided;
    if (*hidden_ns > account_.SpreadNs()) return Weighed::kDiscarded;
    // Empty calls differ by as much, so that nothing is known of this one.
    ++account_.drowned_calls;
    return Weighed::kCounts;
  }

  // One timed call on fresh content, compared. False as for Sample.
  absl::StatusOr<bool> TimedCall(GuestCache cache, CallTiming* timing,
                                 std::optional<double>* hidden_ns) {
    if (IsAlteredCallDue()) {
      ASSAY_ASSIGN_OR_RETURN(const bool right, AlteredCall());
      if (!right) return false;
    }
    ASSAY_ASSIGN_OR_RETURN(result_.step, content_.PresentNext());
    if (result_.step != Step::kDone) return false;
    // In the same place as the candidate's, and of the reference's guest, since the candidate could
    // make its own take longer. Device code has no part in an empty call.
    CallTiming empty;
    result_.step = protocol_.on_device ? work_->CallCandidateEmpty(cache, &empty)
                                       : work_->CallReferenceEmpty(cache, &empty);
    if (result_.step != Step::kDone) return false;
    const absl::Duration release = work_->clock().Monotonic();
    result_.step = work_->Call(cache, timing);
    if (result_.step != Step::kDone) return false;
    if (call_ == 0) first_release_ = release;
    last_end_ = work_->clock().Monotonic();
    ASSAY_RETURN_IF_ERROR(CheckCallTime(timing->duration_ns));
    shortest_empty_ns_ = std::min(shortest_empty_ns_, empty.duration_ns);
    shortest_call_ns_ = std::min(shortest_call_ns_, timing->duration_ns);
    account_.handshakes_ns.push_back(empty.duration_ns);
    if (timing->outside_ns.has_value() && empty.outside_ns.has_value()) {
      account_.NoteEmpty(*empty.outside_ns);
      *hidden_ns = *timing->outside_ns - *empty.outside_ns;
    }
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

  // A call whose inputs change when the candidate is ready for it. False as for Sample.
  absl::StatusOr<bool> AlteredCall() {
    ++altered_calls_;
    ASSAY_ASSIGN_OR_RETURN(result_.step, content_.PresentForAlteredCall());
    if (result_.step != Step::kDone) return false;
    OutputVerdict verdict;
    ASSAY_ASSIGN_OR_RETURN(result_.step,
                           work_->CallAltered(DeriveSeed(seed_, "altered", altered_calls_),
                                              verification_, &verdict, &result_.early_answer));
    if (result_.step != Step::kDone) return false;
    result_.hidden_work = result_.early_answer;
    if (verdict.right) work_->RememberOutputs("a call with changed inputs");
    if (verdict.right || result_.early_answer) return verdict.right;
    result_.right = false;
    result_.reason = verdict.reason;
    if (verdict.reason == "MISMATCH") result_.stale_source = work_->RememberedLabel();
    verification_->set_passed(false);
    verification_->set_failed_case("a call with changed inputs");
    return false;
  }

  // At any time, so that nobody knows of a call that it will not be one.
  bool IsAlteredCallDue() {
    return random_.Below(kTimedCallsPerAltered) == 0 || altered_call_is_owed_;
  }

  // What guests did outside of the timed calls of one series. Calls on new bases are counted by
  // themselves, since work that is hidden in them alone pays for all.
  struct Account {
    struct Kind {
      int calls = 0;                  // for which the kernel could tell
      std::vector<double> hidden_ns;  // of those of them that seem to hide work
    };
    Kind new_base;
    Kind derived;
    size_t void_calls = 0;  // of which the kernel could not tell
    int drowned_calls = 0;  // that count, though they seem to hide work
    // Of the empty calls, how many seem to hide work when held against the one before.
    int noisy_calls = 0;
    std::vector<double> all_ns;         // what calls did outside beyond the empty ones before them
    std::vector<double> outsides_ns;    // of the empty calls before the others
    std::vector<double> handshakes_ns;  // times of all empty calls

    void NoteEmpty(double outside_ns) {
      if (!outsides_ns.empty() && outside_ns - outsides_ns.back() > kHiddenNsMin) ++noisy_calls;
      outsides_ns.push_back(outside_ns);
    }
    // How far empty calls of the reference's guest are above their own median, but for one in ten.
    double SpreadNs() const {
      if (outsides_ns.empty()) return 0;
      std::vector<double> sorted = outsides_ns;
      std::sort(sorted.begin(), sorted.end());
      return sorted[sorted.size() * 9 / 10] - Median(sorted);
    }
    double NoiseShare() const {
      return std::max(kNoiseShareMin,
                      (noisy_calls + 1.0) / (static_cast<double>(outsides_ns.size()) + 2));
    }
  };

  bool IsAccountHopeless() const {
    return account_.void_calls >= kVoidCallsMin &&
           account_.void_calls >= kVoidPerAccounted * account_.outsides_ns.size();
  }

  // Whether so many calls hid work that it was no accident. Then it is the result.
  bool HidesWork(const Account::Kind& kind) {
    std::vector<double> beyond_noise;
    std::copy_if(kind.hidden_ns.begin(), kind.hidden_ns.end(), std::back_inserter(beyond_noise),
                 [spread_ns = account_.SpreadNs()](double ns) { return ns > spread_ns; });
    const auto hiding_calls = static_cast<int>(beyond_noise.size());
    if (2 * hiding_calls <= kind.calls) return false;
    if (ChanceOf(hiding_calls, kind.calls, account_.NoiseShare()) > kChanceMax) return false;
    result_.hidden_work = true;
    result_.hidden_ns = Median(std::move(beyond_noise));
    result_.empty_outside_ns = Median(account_.outsides_ns);
    return true;
  }

  // Whether calls of so long hid less work than is seen in each of them, and yet in most.
  bool HidesALittle(double median_ns) {
    if (protocol_.on_device || account_.all_ns.size() < kHiddenMedianCallsMin) return false;
    const double hidden_ns = Median(account_.all_ns);
    const double limit_ns = std::max(
        {kHiddenMedianNsMin, kHiddenRatioMin * (median_ns + hidden_ns), account_.SpreadNs()});
    if (hidden_ns <= limit_ns) return false;
    result_.hidden_work = true;
    result_.hidden_ns = hidden_ns;
    result_.empty_outside_ns = Median(account_.outsides_ns);
    return true;
  }

  LoadedWork* const work_;
  const MeasureProtocol& protocol_;
  const uint64_t seed_;
  FreshContent content_;
  Random random_;
  v1::Verification* const verification_;
  v1::RunnerSamples* const samples_;
  Account account_;
  DeviceEvidenceLog device_;
  int disturbed_kept_ = 0;
  // Of the timed calls, whether they count or not; between them lies whatever else was done.
  absl::Duration first_release_;
  absl::Duration last_end_;
  double shortest_empty_ns_ = std::numeric_limits<double>::infinity();
  double shortest_call_ns_ = std::numeric_limits<double>::infinity();
  // Warm samples.
  std::vector<double> new_base_ns_;
  std::vector<double> derived_ns_;
  int call_ = 0;
  int altered_calls_ = 0;
  bool altered_call_is_owed_ = false;
  MeasureResult result_;
};

}  // namespace

bool IsHiddenWork(double hidden_ns, double duration_ns) {
  return hidden_ns > kHiddenNsMin && hidden_ns > kHiddenRatioMin * (duration_ns + hidden_ns);
}

bool IsDerivedFaster(const std::vector<double>& new_base_ns,
                     const std::vector<double>& derived_ns) {
  if (new_base_ns.size() < kNewBaseSamplesMin || derived_ns.size() < kDerivedSamplesMin) {
    return false;
  }
  const double fastest_new = *std::min_element(new_base_ns.begin(), new_base_ns.end());
  const double gain_ns = fastest_new - Median(derived_ns);
  return gain_ns > kDerivedNsMin && gain_ns > kDerivedRatioMin * fastest_new;
}

absl::StatusOr<MeasureResult> MeasureWork(LoadedWork* work, const MeasureProtocol& protocol,
                                          uint64_t seed, v1::Verification* verification,
                                          v1::RunnerSamples* samples) {
  return Measurement(work, protocol, seed, verification, samples).Run();
}

}  // namespace assay
