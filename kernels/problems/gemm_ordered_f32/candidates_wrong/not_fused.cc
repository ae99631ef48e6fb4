/* assay-candidate
problem: "gemm_ordered_f32"
language: CPP
label: "not_fused"
*/
// Wrong on purpose: the right order, but product and sum are rounded apart.
extern "C" void gemm_ordered_f32(const float* a, const float* b, float* c, int64_t m, int64_t n,
                                 int64_t k) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) c[i * n + j] = 0.0f;
    for (int64_t p = 0; p < k; ++p) {
      for (int64_t j = 0; j < n; ++j) c[i * n + j] += a[i * k + p] * b[p * n + j];
    }
  }
}
