/* assay-candidate
problem: "gemm_f64"
language: CPP
label: "plain"
*/
// Three loops in i-k-j order, which the compiler vectorises over j.
extern "C" void gemm_f64(const double* a, const double* b, double* c, int64_t m, int64_t n,
                         int64_t k) {
  for (int64_t i = 0; i < m; ++i) {
    double* row = c + i * n;
    for (int64_t j = 0; j < n; ++j) row[j] = 0.0;
    for (int64_t p = 0; p < k; ++p) {
      const double scale = a[i * k + p];
      const double* b_row = b + p * n;
      for (int64_t j = 0; j < n; ++j) row[j] += scale * b_row[j];
    }
  }
}
