// A device against the emulated one: the same candidate, the same inputs, the same outputs.
#ifndef ASSAY_TESTS_GPU_CROSS_CHECK_H_
#define ASSAY_TESTS_GPU_CROSS_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "tests/gpu/kernel_run.h"

namespace assay {

namespace v1 {
class Calibration;
class Candidate;
class Problem;
}  // namespace v1

// A candidate and its PTX.
struct GpuCandidate {
  const v1::Problem* problem = nullptr;      // outlives it
  const v1::Candidate* candidate = nullptr;  // outlives it
  ValueMap configuration;
  std::string ptx;
  std::string problem_id;
  std::string label;
};

struct CrossRow {
  enum class Result { kSameBits, kWithinTolerance, kDiffers, kFailed };
  std::string problem;
  std::string candidate;
  std::string workload;
  Result result = Result::kFailed;
  // Why bits need not be the same; empty when they must.
  std::string why_bits_may_differ;
  double relative_l2 = 0;    // the largest of all outputs; 0 when bits are the same
  double element_error = 0;  // in units of the problem's tolerance policy
  std::string message;       // of kDiffers and kFailed
};

// Compares the outputs of one workload; `emulated` takes the reference's place. Pure.
CrossRow CompareOutcomes(const GpuCandidate& candidate, const ResolvedWorkload& workload,
                         const TensorBytes& device, const TensorBytes& emulated);

struct CrossCheckOptions {
  GpuTarget device;
  GpuTarget emulated;
  uint64_t input_seed = 0;
  Clock* clock = SystemClock();
  absl::Duration time_max;  // of one candidate
};

// Runs workloads from the cheapest on, one at least, until the next one would not fit into
// `time_max` by the time that the last one took. `left_out` gets the names of the others.
std::vector<CrossRow> CrossCheck(const GpuCandidate& candidate, const CrossCheckOptions& options,
                                 std::vector<std::string>* left_out);

// Inputs of a workload in the plain case; the same bits for the same seed.
absl::StatusOr<TensorBytes> MakeInputs(const v1::Problem& problem, const ResolvedWorkload& workload,
                                       uint64_t seed);

// All workloads of a problem with their costs, cheapest first.
struct CostedWorkload {
  ResolvedWorkload workload;
  WorkCost cost;
};
absl::StatusOr<std::vector<CostedWorkload>> WorkloadsByCost(const v1::Problem& problem);

struct TimeRow {
  std::string problem;
  std::string candidate;
  std::string workload;
  double median_ns = 0;
  double spread_ratio = 0;  // interquartile range over median
  double ceiling_ns = 0;    // 0: unknown
  std::string ceiling_basis;
};

// Inputs that were made last: candidates of one problem follow each other.
struct InputMemo {
  std::string key;
  TensorBytes inputs;
};

// Median time of the dearest workload that is measured and has at most `bytes_max`, by events and
// with warm caches: a look at the device, not the protocol by which candidates are judged.
absl::StatusOr<TimeRow> TimeCandidate(const GpuCandidate& candidate, const GpuTarget& device,
                                      const v1::Calibration& calibration, int64_t bytes_max,
                                      uint64_t input_seed, InputMemo* memo);

}  // namespace assay

#endif  // ASSAY_TESTS_GPU_CROSS_CHECK_H_
