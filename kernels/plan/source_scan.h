// A tolerant look at CUDA C++ that nobody has compiled yet: which kernels it declares, with which
// parameters, and how their bodies use blocks. No preprocessor and no types: what cannot be
// understood is left out, never guessed.
#ifndef ASSAY_KERNELS_PLAN_SOURCE_SCAN_H_
#define ASSAY_KERNELS_PLAN_SOURCE_SCAN_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

struct ScannedParameter {
  std::string name;  // empty: not named
  std::string type;  // without const, restrict and stars: "float", "unsigned char"
  bool is_pointer = false;
  bool is_const = false;  // what it points to
  int line = 0;
};

struct ScannedKernel {
  std::string name;
  int line = 0;
  bool is_extern_c = false;
  std::vector<ScannedParameter> parameters;  // at most kLaunchArgumentsMax and one more
  std::string launch_bound;                  // first argument of __launch_bounds__; empty: none
  // Of the body: use of blockIdx.x, .y, .z and threadIdx likewise.
  std::array<bool, 3> uses_block = {false, false, false};
  std::array<bool, 3> uses_thread = {false, false, false};
  // blockIdx.d stands in a product with anything but a parameter, as in
  // blockIdx.x * blockDim.x + threadIdx.x.
  std::array<bool, 3> multiplies_block = {false, false, false};
  bool loops_over_grid = false;      // gridDim is read
  bool uses_dynamic_shared = false;  // extern __shared__
};

struct ScannedSource {
  std::vector<ScannedKernel> kernels;        // that have a body
  std::map<std::string, int64_t> constants;  // #define NAME 123, constexpr int NAME = 123
  bool has_dynamic_shared = false;           // extern __shared__ anywhere
};

// Takes time linear in the text. Comments, strings (also raw ones) and preprocessor lines are
// skipped, whatever is in them.
ScannedSource ScanCudaSource(std::string_view text);

}  // namespace assay

#endif  // ASSAY_KERNELS_PLAN_SOURCE_SCAN_H_
