/* assay-candidate
problem: "gemm_f64"
language: CPP
label: "f32_operands"
*/
// Wrong on purpose: the operands lose their low bits on the way through f32.
extern "C" void gemm_f64(const double* a, const double* b, double* c, int64_t m, int64_t n,
                         int64_t k) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) c[i * n + j] = 0.0;
    for (int64_t p = 0; p < k; ++p) {
      const double scale = static_cast<float>(a[i * k + p]);
      for (int64_t j = 0; j < n; ++j) c[i * n + j] += scale * static_cast<float>(b[p * n + j]);
    }
  }
}
