// The gate: is the candidate slower than the baseline? A pure decision rule on interleaved pairs of
// fresh runners; no gRPC, no store, no clock, no randomness. Depends on base only, so that the
// command line links it too.
//
// Rule (a betting e-process, one for each workload). With y_i = log(candidate_i / baseline_i), a
// tolerated slowdown d0 and a target slowdown d1 of the tier, and a scale s:
//   z_i = clip((y_i - d0) / (1.5 s), -1, 1)     E  = mean over L in {.2 .4 .6 .8 .95} of prod(1 + L
//   z_i) w_i = clip((d1 - y_i) / (1.5 s), -1, 1)     E' = the same with w_i
// Read after every pair from the sixth on: REGRESSION when E >= 100, PASS when E' >= 20,
// INCONCLUSIVE when neither happened by the last pair. As |z_i| <= 1, E can reach 100 only from the
// ninth pair on: fewer pairs can pass but never fail.
//
// Validity. If s is fixed before the first pair and the order inside each pair is random, E is a
// non-negative supermartingale whenever the true slowdown is at most d0, so by Ville's inequality
// P(E ever >= 100) <= 1 % for one workload, however often it is read. With `scale` 0 there is no
// history, and s comes from the pairs' own spread (1.4826 times the median absolute deviation, at
// least kGateScaleFloor). Then s depends on the data that it scales and the bound is no longer a
// theorem: the simulation in gate_test.cc holds the alarm rate below 0.5 % instead, for t4 noise of
// 0.2 % to 2 %. Over W workloads the bound is W %; a regression that blocks somebody should be
// confirmed on fresh pairs with `regression_threshold` 20.
#ifndef ASSAY_SERVER_GATE_GATE_H_
#define ASSAY_SERVER_GATE_GATE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace assay {

enum class GateTier { kStrict, kDefault, kLoose };
enum class GateDecision { kPass, kRegression, kInconclusive };

inline constexpr int kGatePairsMin = 6;           // below: inconclusive
inline constexpr int kGatePairsToFail = 9;        // below: cannot find a regression
inline constexpr int kGatePairsDefault = 16;      // a pair count that can decide both ways
inline constexpr double kGateScaleFloor = 0.002;  // log-ratio

// Slowdowns as fractions: 0.005 is 0.5 %.
struct GateMargins {
  double tolerated = 0;  // d0
  double target = 0;     // d1
};
// strict 0.25 % / 1 %, default 0.5 % / 2 %, loose 1 % / 5 %.
GateMargins MarginsOf(GateTier tier);

// "strict", "default", "loose"; INVALID_ARGUMENT lists them.
absl::StatusOr<GateTier> ParseGateTier(std::string_view text);
std::string_view GateTierName(GateTier tier);

// Medians of two fresh runners that ran one after the other, in nanoseconds.
struct GatePair {
  double baseline_ns = 0;
  double candidate_ns = 0;
};

struct GateOptions {
  GateTier tier = GateTier::kDefault;
  // Spread (one sigma) of log-ratios of this worker from its A/A history; 0: none, see above.
  double scale = 0;
  double regression_threshold = 100;
  double pass_threshold = 20;
};

struct GateWorkload {
  std::string workload;
  std::vector<GatePair> pairs;  // in the order in which they ran
};

struct GateWorkloadResult {
  std::string workload;
  GateDecision decision = GateDecision::kInconclusive;
  // Why, for people: which threshold was passed with how many pairs, or what was missing.
  std::string explanation;
  int pair_count = 0;     // usable pairs
  int pairs_read = 0;     // pairs read when the decision fell
  int dropped_count = 0;  // pairs with a time that is not positive and finite
  // Median of candidate / baseline; above 1 is slower. 0 without pairs.
  double ratio = 0;
  // Distribution-free interval for that median, from order statistics, over all usable pairs.
  double ratio_low = 0;
  double ratio_high = 0;
  // Coverage of the interval: 0.95 or the next higher that is possible; less with under six pairs.
  double confidence = 0;
  double scale = 0;  // the s that was used
  // Slowdown that would be found about 84 times in 100: d0 + 4.2 s / sqrt(n), fitted to simulation.
  double minimum_detectable_effect = 0;
  double evidence_of_regression = 1;  // E at the decision
  double evidence_of_pass = 1;        // E' at the decision
};

struct GateResult {
  // REGRESSION when any workload regressed; PASS when all passed; otherwise INCONCLUSIVE, also
  // without workloads.
  GateDecision decision = GateDecision::kInconclusive;
  GateMargins margins;
  std::vector<GateWorkloadResult> workloads;  // in the order given
};

// Never fails: unusable input is INCONCLUSIVE and says why.
GateResult DecideGate(const GateOptions& options, const std::vector<GateWorkload>& workloads);

}  // namespace assay

#endif  // ASSAY_SERVER_GATE_GATE_H_
