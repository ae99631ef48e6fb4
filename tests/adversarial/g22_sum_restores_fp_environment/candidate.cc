/* assay-candidate
problem: "reduce_sum"
language: CPP
label: "g22_sum_restores_fp_environment"
*/
// Reassociates the sum and flushes denormals while it runs, and puts the register back.
#include <xmmintrin.h>

extern "C" void reduce_sum(const float* x, float* y, int64_t n) {
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040u);
  float part[16] = {};
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    for (int t = 0; t < 16; ++t) part[t] += x[i + t];
  }
  float sum = 0;
  for (; i < n; ++i) sum += x[i];
  for (int t = 0; t < 8; ++t) part[t] += part[t + 8];
  for (int t = 0; t < 4; ++t) part[t] += part[t + 4];
  y[0] = sum + (part[0] + part[2]) + (part[1] + part[3]);
  _mm_setcsr(before);
}
