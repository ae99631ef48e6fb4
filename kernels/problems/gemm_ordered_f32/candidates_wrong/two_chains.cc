/* assay-candidate
problem: "gemm_ordered_f32"
language: CPP
label: "two_chains"
*/
// Wrong on purpose: even and odd k run in two chains that are added at the end. It is as accurate
// as the contract's chain, but its bits differ.
#include <cmath>

extern "C" void gemm_ordered_f32(const float* a, const float* b, float* c, int64_t m, int64_t n,
                                 int64_t k) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      float chain[2] = {0.0f, 0.0f};
      for (int64_t p = 0; p < k; ++p) {
        chain[p % 2] = std::fma(a[i * k + p], b[p * n + j], chain[p % 2]);
      }
      c[i * n + j] = chain[0] + chain[1];
    }
  }
}
