/* assay-candidate
problem: "gemm_f16"
language: CPP
label: "plain"
*/
// b is widened to f32 once; then three loops in i-k-j order, which the compiler vectorises over j.
#include <algorithm>
#include <cmath>
#include <vector>

namespace {

// Finite values only.
float Widen(uint16_t half) {
  const int exponent = (half >> 10) & 0x1f;
  const int fraction = half & 0x3ff;
  const float magnitude = exponent == 0
                              ? std::ldexp(static_cast<float>(fraction), -24)
                              : std::ldexp(static_cast<float>(fraction + 0x400), exponent - 25);
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

}  // namespace

extern "C" void gemm_f16(const uint16_t* a, const uint16_t* b, float* c, int64_t m, int64_t n,
                         int64_t k) {
  std::vector<float> wide(k * n);
  std::transform(b, b + k * n, wide.begin(), Widen);
  for (int64_t i = 0; i < m; ++i) {
    float* row = c + i * n;
    for (int64_t j = 0; j < n; ++j) row[j] = 0.0f;
    for (int64_t p = 0; p < k; ++p) {
      const float scale = Widen(a[i * k + p]);
      const float* b_row = wide.data() + p * n;
      for (int64_t j = 0; j < n; ++j) row[j] += scale * b_row[j];
    }
  }
}
