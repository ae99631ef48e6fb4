extern "C" void gemm_bias_reference(const float* a, const float* b, const float* bias, double* c, int64_t m, int64_t n,
                                    int64_t k) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) c[i * n + j] = bias[j];
    for (int64_t p = 0; p < k; ++p) {
      for (int64_t j = 0; j < n; ++j) c[i * n + j] += static_cast<double>(a[i * k + p]) * b[p * n + j];
    }
  }
}
