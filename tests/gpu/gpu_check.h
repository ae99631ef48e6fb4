// One run of gpu_check: which parts there are, how long each may take, and where results go.
#ifndef ASSAY_TESTS_GPU_GPU_CHECK_H_
#define ASSAY_TESTS_GPU_GPU_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace assay {

struct GpuCheckOptions {
  std::string driver = "libcuda.so.1";
  std::string emulator;  // path of the emulated driver's library
  std::string problems;  // the folder kernels/problems
  std::string ptx_directory;
  std::string helper;             // path of assay-nvrtc
  std::string out_directory;      // of the results; empty: a folder named after the device in
  std::string results_directory;  // this one; both empty: results are only printed
  uint64_t seed = 1;              // of inputs
  absl::Duration ceiling_time = absl::Seconds(60);
  absl::Duration check_time = absl::Seconds(240);
  absl::Duration run_time = absl::Seconds(60);  // of the times of candidates
  int compile_arch = 0;  // not 0: only compiles for sm_N into ptx_directory; needs no device
  std::vector<std::string> candidates;  // paths; empty: all that are shipped
};

// INVALID_ARGUMENT says which argument is wrong. `binaries` is the folder of the other programs.
absl::StatusOr<GpuCheckOptions> ParseGpuCheckArguments(const std::vector<std::string>& arguments,
                                                       const std::string& binaries);

// Prints to standard output, and returns the exit code: 0 when everything agreed or there is no
// device, 1 when something differs or failed. A bad status is the machine's or the caller's.
absl::StatusOr<int> RunGpuCheck(const GpuCheckOptions& options);

}  // namespace assay

#endif  // ASSAY_TESTS_GPU_GPU_CHECK_H_
