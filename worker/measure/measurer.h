// Measures one workload in one runner: warm-up, warm samples, cold samples.
//
// Every timed call works on content that the candidate has not seen, into poisoned outputs, and its
// outputs are compared. Blocking; not thread-safe.
#ifndef ASSAY_WORKER_MEASURE_MEASURER_H_
#define ASSAY_WORKER_MEASURE_MEASURER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/measure/protocol.h"
#include "worker/verify/loaded_work.h"

namespace assay {

namespace v1 {
class RunnerSamples;
class Verification;
}  // namespace v1

struct MeasureResult {
  Step step = Step::kDone;
  bool right = true;
  std::string reason;  // when not right
  // Of the call whose output was wrong, from 1 over warm and cold; 0: none.
  int failed_timed_call = 0;
  // What the wrong output was the right answer to; empty: to nothing asked before.
  std::string stale_source;
  // The candidate worked outside of the timed calls.
  bool hidden_work = false;
  bool early_answer = false;  // it answered inputs that changed before the clock started
  // Before each of the candidate's calls the reference's guest makes one that does nothing. Medians
  // of the candidate's CallTiming::outside_ns less that of the empty call, over calls that hid
  // work, and of the latter; 0 where the kernel could not tell, as when both guests and the runner
  // share a core: then nothing is known of hidden work.
  double hidden_ns = 0;
  double empty_outside_ns = 0;
  // Set when content derived from an earlier one was answered faster than new content, so that only
  // the latter counts: medians of both.
  double new_base_ns = 0;
  double derived_ns = 0;
};

// `seed` decides content; it must follow from the nonce. The work holds a base that was verified.
// INTERNAL with reason TIME_IMPOSSIBLE when the timer gave what cannot be.
absl::StatusOr<MeasureResult> MeasureWork(LoadedWork* work, const MeasureProtocol& protocol,
                                          uint64_t seed, v1::Verification* verification,
                                          v1::RunnerSamples* samples);

// Whether a call hid work: the candidate did more outside of it than an empty call does, by more
// than 3 us and by more than 5 % of the call. The first is above what an interrupt costs, the
// second keeps slow kernels from being accused of the time their stores take to drain. Such a call
// does not count; a candidate most of whose calls are such hides work.
bool IsHiddenWork(double hidden_ns, double duration_ns);

// Whether content derived from a base that the candidate has seen is answered faster than new
// content is: all times of the latter are above the median of the former, by more than 5 % and
// 150 ns. Never for fewer than 3 samples of each.
bool IsDerivedFaster(const std::vector<double>& new_base_ns, const std::vector<double>& derived_ns);

}  // namespace assay

#endif  // ASSAY_WORKER_MEASURE_MEASURER_H_
