/* assay-candidate
problem: "reduce_sum"
language: CPP
label: "reduce_sum_half_accumulator"
# Expected: INCORRECT (MISMATCH). Accumulates in half precision.
*/
#include <immintrin.h>
extern "C" void reduce_sum(const float* x, float* y, int64_t n) {
  float s = 0;
  for (int64_t i = 0; i < n; ++i) s = _cvtsh_ss(_cvtss_sh(s + x[i], 0));
  *y = s;
}
