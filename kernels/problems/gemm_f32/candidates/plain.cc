/* assay-candidate
problem: "gemm_f32"
language: CPP
label: "plain"
*/
// Three loops in i-k-j order, which the compiler vectorises over j.
extern "C" void gemm_f32(const float* a, const float* b, float* c, int64_t m, int64_t n,
                         int64_t k) {
  for (int64_t i = 0; i < m; ++i) {
    float* row = c + i * n;
    for (int64_t j = 0; j < n; ++j) row[j] = 0.0f;
    for (int64_t p = 0; p < k; ++p) {
      const float scale = a[i * k + p];
      const float* b_row = b + p * n;
      for (int64_t j = 0; j < n; ++j) row[j] += scale * b_row[j];
    }
  }
}
