/* assay-candidate
problem: "gemm_bf16"
language: CPP
label: "plain"
*/
// b is widened to f32 once; then three loops in i-k-j order, which the compiler vectorises over j.
#include <algorithm>
#include <cstring>
#include <vector>

namespace {

// The upper half of a float.
float Widen(uint16_t half) {
  const uint32_t bits = static_cast<uint32_t>(half) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace

extern "C" void gemm_bf16(const uint16_t* a, const uint16_t* b, float* c, int64_t m, int64_t n,
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
