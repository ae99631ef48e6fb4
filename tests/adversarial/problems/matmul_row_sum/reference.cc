extern "C" void matmul_row_sum_reference(const float* a, const float* b, double* s, int64_t m, int64_t n, int64_t k) {
  for (int64_t i = 0; i < m; ++i) {
    s[i] = 0;
    for (int64_t p = 0; p < k; ++p) {
      for (int64_t j = 0; j < n; ++j) s[i] += static_cast<double>(a[i * k + p]) * b[p * n + j];
    }
  }
}
