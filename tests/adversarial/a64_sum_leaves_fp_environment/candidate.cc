/* assay-candidate
problem: "reduce_sum"
language: CPP
label: "a64_sum_leaves_fp_environment"
*/
// Sets the floating-point control register and leaves it so.
#include <xmmintrin.h>

extern "C" void reduce_sum(const float* x, float* y, int64_t n) {
  // Flush to zero, denormals are zero, round towards zero.
  _mm_setcsr(_mm_getcsr() | 0x8040u | 0x6000u);
  float part[32] = {};
  for (int64_t i = 0; i < n; ++i) part[i % 32] += x[i];
  float sum = 0;
  for (const float p : part) sum += p;
  y[0] = sum;
}
