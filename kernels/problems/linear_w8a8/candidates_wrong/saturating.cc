/* assay-candidate
problem: "linear_w8a8"
language: CPP
label: "saturating"
*/
// Wrong on purpose: pairs of products are added in 16 bits with saturation, as vpmaddubsw does.
// Only -128 * -128 + -128 * -128 leaves the range.
#include <algorithm>

extern "C" void linear_w8a8(const int8_t* x, const int8_t* w, const float* x_scale,
                            const float* w_scale, const float* bias, int32_t* acc, float* y,
                            int64_t m, int64_t n, int64_t k) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const int8_t* x_row = x + i * k;
      const int8_t* w_row = w + j * k;
      int32_t sum = 0;
      int64_t p = 0;
      for (; p + 2 <= k; p += 2) {
        const int32_t pair = x_row[p] * w_row[p] + x_row[p + 1] * w_row[p + 1];
        sum += std::clamp(pair, -32768, 32767);
      }
      for (; p < k; ++p) sum += x_row[p] * w_row[p];
      acc[i * n + j] = sum;
      y[i * n + j] = static_cast<float>(sum) * x_scale[i] * w_scale[j] + bias[j];
    }
  }
}
