/* assay-candidate
problem: "linear_w8a8"
language: CPP
label: "f16_scales"
*/
// Wrong on purpose: scales are rounded to the 11 significant bits of f16.
#include <cstring>

namespace {

// To 11 significant bits, ties to even.
float Rounded(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  bits += 0x0fff + ((bits >> 13) & 1);
  bits &= ~uint32_t{0x1fff};
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace

extern "C" void linear_w8a8(const int8_t* x, const int8_t* w, const float* x_scale,
                            const float* w_scale, const float* bias, int32_t* acc, float* y,
                            int64_t m, int64_t n, int64_t k) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      int32_t sum = 0;
      for (int64_t p = 0; p < k; ++p) {
        sum += static_cast<int32_t>(x[i * k + p]) * static_cast<int32_t>(w[j * k + p]);
      }
      acc[i * n + j] = sum;
      y[i * n + j] = static_cast<float>(sum) * Rounded(x_scale[i]) * Rounded(w_scale[j]) + bias[j];
    }
  }
}
