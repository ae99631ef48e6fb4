// Runs a device-tier candidate on one device, once and by the CUDA driver API alone: a second way
// beside the runner's, so that the two do not share a fault.
#ifndef ASSAY_TESTS_GPU_KERNEL_RUN_H_
#define ASSAY_TESTS_GPU_KERNEL_RUN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/expression/expression.h"
#include "kernels/problem.h"
#include "worker/backend/cuda/driver.h"

namespace assay {

namespace v1 {
class CandidateSpec;
}

// Bytes by tensor, in the order of ResolvedWorkload.
using TensorBytes = std::vector<std::vector<std::byte>>;

struct GpuTarget {
  const CudaDriver* driver = nullptr;
  int ordinal = 0;
  // Every buffer lies between two zones whose bytes are looked at after the launches. Without them
  // an emulated device sees accesses outside by itself.
  bool guard_zones = false;
  // Of an emulated device alone.
  int arch = 80;
  uint64_t seed = 0;
  int host_threads = 1;
};

// All pointers outlive the call.
struct KernelJob {
  const v1::CandidateSpec* spec = nullptr;
  const ValueMap* configuration = nullptr;
  const std::string* ptx = nullptr;
  const ResolvedWorkload* workload = nullptr;
  const TensorBytes* inputs = nullptr;  // outputs stay empty in it
};

struct KernelOutcome {
  TensorBytes outputs;  // inputs stay empty in it
  std::vector<double> times_ns;
};

// Loads, plans, launches, waits, and reads the outputs, in a context of its own; then, on a real
// device, takes the time of `timed_runs` more runs by events. Outputs and workspaces are poisoned
// before the first run. Errors say what was found: an access outside of a buffer, a fault of the
// emulated device, an error of the driver.
absl::StatusOr<KernelOutcome> RunKernels(const GpuTarget& target, const KernelJob& job,
                                         int timed_runs);

}  // namespace assay

#endif  // ASSAY_TESTS_GPU_KERNEL_RUN_H_
