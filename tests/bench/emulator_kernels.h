// Shipped candidates on the emulated device, with every check on: what assay-bench-emulator times.
//
// Not thread-safe: the clocks are those of the process.
#ifndef ASSAY_TESTS_BENCH_EMULATOR_KERNELS_H_
#define ASSAY_TESTS_BENCH_EMULATOR_KERNELS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "emulator/engine.h"

namespace assay::bench {

enum class BenchProblem { kGemm, kSoftmax, kLayernorm };

struct BenchKernel {
  std::string name;
  BenchProblem problem;
  std::string kernel;     // the entry point, named as the problem
  std::string candidate;  // file of the problem's candidates
  std::vector<std::pair<std::string, int64_t>> macros;
  emulator::Dim3 grid;
  emulator::Dim3 block;
  uint32_t dynamic_shared_bytes;
  double seconds_max;  // to reach, on one core
};

// SGEMM of 512 x 512 x 512; softmax and layernorm of 1024 x 1024.
std::vector<BenchKernel> BenchKernels();

struct BenchRun {
  double cpu_seconds = 0;  // of all host threads together
  double wall_seconds = 0;
  uint64_t lane_instructions = 0;
};

// One launch. INTERNAL when the device reports a fault or the result is wrong.
absl::StatusOr<BenchRun> RunBenchKernel(const BenchKernel& kernel, std::string_view ptx,
                                        int threads);

}  // namespace assay::bench

#endif  // ASSAY_TESTS_BENCH_EMULATOR_KERNELS_H_
