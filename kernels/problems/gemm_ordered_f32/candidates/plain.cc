/* assay-candidate
problem: "gemm_ordered_f32"
language: CPP
label: "plain"
*/
// Three loops in i-k-j order: the chain of each element runs in ascending k, and the compiler
// vectorises over j.
#include <cmath>

extern "C" void gemm_ordered_f32(const float* a, const float* b, float* c, int64_t m, int64_t n,
                                 int64_t k) {
  for (int64_t i = 0; i < m; ++i) {
    float* row = c + i * n;
    for (int64_t j = 0; j < n; ++j) row[j] = 0.0f;
    for (int64_t p = 0; p < k; ++p) {
      const float scale = a[i * k + p];
      const float* b_row = b + p * n;
      for (int64_t j = 0; j < n; ++j) row[j] = std::fma(scale, b_row[j], row[j]);
    }
  }
}
