/* assay-candidate
problem: "gemm_bf16"
language: CPP
label: "narrow_sums"
*/
// Wrong on purpose: the running sums are kept in bf16, as an accumulator of that type would.
#include <cstring>

namespace {

float Widen(uint16_t half) {
  const uint32_t bits = static_cast<uint32_t>(half) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

float Narrow(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  bits += 0x7fff + ((bits >> 16) & 1);
  return Widen(static_cast<uint16_t>(bits >> 16));
}

}  // namespace

extern "C" void gemm_bf16(const uint16_t* a, const uint16_t* b, float* c, int64_t m, int64_t n,
                          int64_t k) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0.0f;
      for (int64_t p = 0; p < k; ++p) {
        sum = Narrow(sum + Widen(a[i * k + p]) * Widen(b[p * n + j]));
      }
      c[i * n + j] = sum;
    }
  }
}
