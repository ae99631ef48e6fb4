/* assay-candidate
problem: "gemm_f64"
language: CPP
label: "drops_k_tail"
*/
// Wrong on purpose: k is unrolled by four and the rest of k is left out.
extern "C" void gemm_f64(const double* a, const double* b, double* c, int64_t m, int64_t n,
                         int64_t k) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) c[i * n + j] = 0.0;
    for (int64_t p = 0; p + 4 <= k; p += 4) {
      for (int64_t q = p; q < p + 4; ++q) {
        for (int64_t j = 0; j < n; ++j) c[i * n + j] += a[i * k + q] * b[q * n + j];
      }
    }
  }
}
