// How long launches take, behind an interface: a real device tells by its events, tests by a model.
#ifndef ASSAY_WORKER_CEILING_CUDA_BENCH_TIMER_H_
#define ASSAY_WORKER_CEILING_CUDA_BENCH_TIMER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "worker/ceiling/cuda/bench_kernels.h"

namespace assay {

class BenchTimer {
 public:
  virtual ~BenchTimer() = default;

  // Device time of each of `samples` spans, in nanoseconds; a span is `launches` launches of
  // `kernel`, back to back, between two events. Blocks. RESOURCE_EXHAUSTED when the arrays do not
  // fit into the device's memory.
  virtual absl::StatusOr<std::vector<double>> Time(const BenchKernel& kernel,
                                                   const BenchShape& shape, int launches,
                                                   int samples) = 0;
};

}  // namespace assay

#endif  // ASSAY_WORKER_CEILING_CUDA_BENCH_TIMER_H_
