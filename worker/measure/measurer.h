// Measures one workload in one runner: warm-up, warm samples, cold samples.
//
// Every timed call works on content that the candidate has not seen, into poisoned outputs, and its
// outputs are compared. Blocking; not thread-safe.
#ifndef ASSAY_WORKER_MEASURE_MEASURER_H_
#define ASSAY_WORKER_MEASURE_MEASURER_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "worker/measure/protocol.h"
#include "worker/verify/loaded_work.h"

namespace assay {

namespace v1 {
class RunnerSamples;
class Verification;
}  // namespace v1

// What follows completion, as medians: see CallTiming.
struct AfterCall {
  double answer_ns = 0;
  double idle_ns = 0;
};

struct MeasureResult {
  Step step = Step::kDone;
  bool right = true;
  std::string reason;  // when not right
  // Of the call whose output was wrong, from 1 over warm and cold; 0: none.
  int failed_timed_call = 0;
  // What the wrong output was the right answer to; empty: to nothing asked before.
  std::string stale_source;
  // The candidate went on after it had reported completion.
  bool late_work = false;
  AfterCall after;        // of the candidate's calls
  AfterCall after_empty;  // of calls that do nothing
};

// `seed` decides content; it must follow from the nonce. The work holds a base that was verified.
absl::StatusOr<MeasureResult> MeasureWork(LoadedWork* work, const MeasureProtocol& protocol,
                                          uint64_t seed, v1::Verification* verification,
                                          v1::RunnerSamples* samples);

// Whether the candidate works on after completion: its answers come later than those of empty calls
// by more than 1 us, or it falls asleep later by more than 5 us, and by more than 5 % of the call.
// The first parts are far above what an interrupted or descheduled guest does to a median, the last
// keeps slow kernels from being accused of the time their stores take to drain. A candidate can
// forge the answer, but not its sleep.
bool IsLateWork(const AfterCall& after, const AfterCall& after_empty, double duration_ns);

}  // namespace assay

#endif  // ASSAY_WORKER_MEASURE_MEASURER_H_
