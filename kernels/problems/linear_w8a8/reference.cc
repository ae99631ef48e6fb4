// Exact int32 sums, then the epilogue in fp64.
#include <cstdint>

extern "C" void linear_w8a8_reference(const int8_t* x, const int8_t* w, const float* x_scale,
                                      const float* w_scale, const float* bias, int32_t* acc,
                                      double* y, int64_t m, int64_t n, int64_t k) {
  // Rows of w in an outer block, so that each stays in cache while x passes.
  constexpr int64_t kBlock = 32;
  for (int64_t j0 = 0; j0 < n; j0 += kBlock) {
    const int64_t j1 = j0 + kBlock < n ? j0 + kBlock : n;
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = j0; j < j1; ++j) {
        int32_t sum = 0;
        for (int64_t p = 0; p < k; ++p) {
          sum += static_cast<int32_t>(x[i * k + p]) * static_cast<int32_t>(w[j * k + p]);
        }
        acc[i * n + j] = sum;
        y[i * n + j] = static_cast<double>(sum) * x_scale[i] * w_scale[j] + bias[j];
      }
    }
  }
}
