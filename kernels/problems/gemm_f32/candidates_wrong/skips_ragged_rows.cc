/* assay-candidate
problem: "gemm_f32"
language: CPP
label: "skips_ragged_rows"
*/
// Wrong on purpose: computes rows in groups of four and leaves out the rest of m.
extern "C" void gemm_f32(const float* a, const float* b, float* c, int64_t m, int64_t n,
                         int64_t k) {
  for (int64_t i = 0; i + 4 <= m; i += 4) {
    for (int64_t r = i; r < i + 4; ++r) {
      for (int64_t j = 0; j < n; ++j) c[r * n + j] = 0.0f;
      for (int64_t p = 0; p < k; ++p) {
        for (int64_t j = 0; j < n; ++j) c[r * n + j] += a[r * k + p] * b[p * n + j];
      }
    }
  }
}
