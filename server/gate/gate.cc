#include "server/gate/gate.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/strings.h"

namespace assay {
namespace {

constexpr std::array<double, 5> kBets = {0.2, 0.4, 0.6, 0.8, 0.95};
constexpr double kMadToSigma = 1.4826;  // for normal data
constexpr double kClipWidth = 1.5;      // in units of the scale
// More dropped pairs than this share say that the environment is not fit to decide.
constexpr double kDroppedShareMax = 0.25;

double MedianOf(std::vector<double> values) {
  const size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + middle, values.end());
  if (values.size() % 2 == 1) return values[middle];
  const double upper = values[middle];
  return (upper + *std::max_element(values.begin(), values.begin() + middle)) / 2;
}

double OwnScale(const std::vector<double>& log_ratios) {
  const double center = MedianOf(log_ratios);
  std::vector<double> deviations;
  deviations.reserve(log_ratios.size());
  for (double y : log_ratios) deviations.push_back(std::fabs(y - center));
  return kMadToSigma * MedianOf(std::move(deviations));
}

// Wealth of a bettor who bets each of kBets on the sign of a quantity, averaged.
class EProcess {
 public:
  void Observe(double z) {
    z = std::clamp(z, -1.0, 1.0);
    for (size_t i = 0; i < kBets.size(); ++i) wealth_[i] *= 1 + kBets[i] * z;
  }
  double value() const {
    double sum = 0;
    for (double w : wealth_) sum += w;
    return sum / kBets.size();
  }

 private:
  std::array<double, kBets.size()> wealth_ = {1, 1, 1, 1, 1};
};

// The interval [y_(k), y_(n+1-k)] of the sorted values covers the median with probability
// 1 - 2 P(Bin(n, 1/2) < k); takes the largest k that still covers 95 %.
void MedianInterval(std::vector<double> sorted, GateWorkloadResult* result) {
  std::sort(sorted.begin(), sorted.end());
  const int n = static_cast<int>(sorted.size());
  double term = std::pow(0.5, n);  // P(Bin = 0)
  double below = term;             // P(Bin < k) for k = 1
  int k = 1;
  while (k < n - k) {
    term *= static_cast<double>(n - k + 1) / k;
    if (2 * (below + term) > 0.05) break;
    below += term;
    ++k;
  }
  result->ratio_low = std::exp(sorted[k - 1]);
  result->ratio_high = std::exp(sorted[n - k]);
  result->confidence = std::max(0.0, 1 - 2 * below);
}

void RunTest(const GateOptions& options, const GateMargins& margins,
             const std::vector<double>& log_ratios, GateWorkloadResult* result) {
  const double width = kClipWidth * result->scale;
  const double d0 = std::log1p(margins.tolerated);
  const double d1 = std::log1p(margins.target);
  EProcess slower;
  EProcess not_slower;
  for (size_t i = 0; i < log_ratios.size(); ++i) {
    slower.Observe((log_ratios[i] - d0) / width);
    not_slower.Observe((d1 - log_ratios[i]) / width);
    result->pairs_read = static_cast<int>(i) + 1;
    result->evidence_of_regression = slower.value();
    result->evidence_of_pass = not_slower.value();
    if (result->pairs_read < kGatePairsMin) continue;
    // A slowdown between the margins can pass both thresholds; it is one that is not tolerated.
    if (slower.value() >= options.regression_threshold) {
      result->decision = GateDecision::kRegression;
      result->explanation =
          absl::StrFormat("slower than the tolerated %.2f %%: evidence %.0f >= %.0f after %d pairs",
                          100 * margins.tolerated, slower.value(), options.regression_threshold,
                          result->pairs_read);
      return;
    }
    if (not_slower.value() >= options.pass_threshold) {
      result->decision = GateDecision::kPass;
      result->explanation = absl::StrFormat(
          "not slower by %.2f %%: evidence %.0f >= %.0f after %d pairs", 100 * margins.target,
          not_slower.value(), options.pass_threshold, result->pairs_read);
      return;
    }
  }
  result->explanation = absl::StrFormat(
      "%d pairs do not decide: spread %.2f %%, smallest slowdown that they would find %.2f %%; use "
      "more pairs, a quieter machine or a looser tier",
      result->pairs_read, 100 * result->scale, 100 * result->minimum_detectable_effect);
}

GateWorkloadResult DecideWorkload(const GateOptions& options, const GateMargins& margins,
                                  const GateWorkload& workload) {
  GateWorkloadResult result;
  result.workload = workload.workload;
  std::vector<double> log_ratios;
  log_ratios.reserve(workload.pairs.size());
  for (const GatePair& pair : workload.pairs) {
    const double y = std::log(pair.candidate_ns / pair.baseline_ns);
    if (pair.baseline_ns > 0 && pair.candidate_ns > 0 && std::isfinite(y)) {
      log_ratios.push_back(y);
    } else {
      ++result.dropped_count;
    }
  }
  result.pair_count = static_cast<int>(log_ratios.size());
  if (log_ratios.empty()) {
    result.explanation = "no usable pair";
    return result;
  }
  result.ratio = std::exp(MedianOf(log_ratios));
  MedianInterval(log_ratios, &result);
  const double history = std::isfinite(options.scale) ? options.scale : 0;
  result.scale = std::max(kGateScaleFloor, history > 0 ? history : OwnScale(log_ratios));
  result.minimum_detectable_effect =
      margins.tolerated + 4.2 * result.scale / std::sqrt(static_cast<double>(result.pair_count));
  if (result.pair_count < kGatePairsMin) {
    result.explanation =
        absl::StrCat(result.pair_count, " usable pairs, at least ", kGatePairsMin, " are needed");
    return result;
  }
  if (result.dropped_count > kDroppedShareMax * static_cast<double>(workload.pairs.size())) {
    result.explanation = absl::StrCat(result.dropped_count, " of ", workload.pairs.size(),
                                      " pairs were unusable; the environment is not fit to decide");
    return result;
  }
  RunTest(options, margins, log_ratios, &result);
  return result;
}

}  // namespace

GateMargins MarginsOf(GateTier tier) {
  switch (tier) {
    case GateTier::kStrict:
      return {0.0025, 0.01};
    case GateTier::kDefault:
      return {0.005, 0.02};
    case GateTier::kLoose:
      return {0.01, 0.05};
  }
  return {0.005, 0.02};
}

absl::StatusOr<GateTier> ParseGateTier(std::string_view text) {
  for (GateTier tier : {GateTier::kStrict, GateTier::kDefault, GateTier::kLoose}) {
    if (text == GateTierName(tier)) return tier;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown tier '", Av(text), "'; use strict, default or loose"));
}

std::string_view GateTierName(GateTier tier) {
  switch (tier) {
    case GateTier::kStrict:
      return "strict";
    case GateTier::kDefault:
      return "default";
    case GateTier::kLoose:
      return "loose";
  }
  return "default";
}

GateResult DecideGate(const GateOptions& options, const std::vector<GateWorkload>& workloads) {
  GateResult result;
  result.margins = MarginsOf(options.tier);
  bool any_regression = false;
  bool all_passed = !workloads.empty();
  for (const GateWorkload& workload : workloads) {
    result.workloads.push_back(DecideWorkload(options, result.margins, workload));
    any_regression |= result.workloads.back().decision == GateDecision::kRegression;
    all_passed &= result.workloads.back().decision == GateDecision::kPass;
  }
  if (any_regression) {
    result.decision = GateDecision::kRegression;
  } else if (all_passed) {
    result.decision = GateDecision::kPass;
  }
  return result;
}

}  // namespace assay
