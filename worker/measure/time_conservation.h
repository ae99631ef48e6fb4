// Times that cannot be. A timer that gives one is broken, or was reached by what it times; nothing
// that it said counts then, and no candidate is judged by it. Pure.
#ifndef ASSAY_WORKER_MEASURE_TIME_CONSERVATION_H_
#define ASSAY_WORKER_MEASURE_TIME_CONSERVATION_H_

#include "absl/status/status.h"

namespace assay {

namespace v1 {
class RunnerSamples;
}

// INTERNAL with reason TIME_IMPOSSIBLE for a time that is no positive number.
absl::Status CheckCallTime(double duration_ns);

// The same where the shortest call of a series took less than half of the shortest of the empty
// calls between them: the same handshake, with nothing in it. Half, since the two are of different
// processes.
absl::Status CheckShortestCall(double shortest_ns, double shortest_empty_ns);

// The same for samples that together take longer than what passed around them, and for samples
// without it. Calls come one after the other, so that nothing honest can.
absl::Status CheckConservation(const v1::RunnerSamples& samples);

}  // namespace assay

#endif  // ASSAY_WORKER_MEASURE_TIME_CONSERVATION_H_
