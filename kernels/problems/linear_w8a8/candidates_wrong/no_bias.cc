/* assay-candidate
problem: "linear_w8a8"
language: CPP
label: "no_bias"
*/
// Wrong on purpose: exact sums, but the epilogue leaves the bias out.
extern "C" void linear_w8a8(const int8_t* x, const int8_t* w, const float* x_scale,
                            const float* w_scale, const float*, int32_t* acc, float* y, int64_t m,
                            int64_t n, int64_t k) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      int32_t sum = 0;
      for (int64_t p = 0; p < k; ++p) sum += x[i * k + p] * w[j * k + p];
      acc[i * n + j] = sum;
      y[i * n + j] = static_cast<float>(sum) * x_scale[i] * w_scale[j];
    }
  }
}
