/* assay-candidate
problem: "gemm_f32"
language: CPP
label: "bf16_operands"
contract: "tf32"
*/
// Wrong on purpose: the operands are rounded to the 8 significant bits of bf16, where
// the contract has 11.
#include <cstring>
#include <vector>

namespace {

float RoundToBf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  bits += 0x7fff + ((bits >> 16) & 1);
  bits &= ~uint32_t{0xffff};
  std::memcpy(&value, &bits, sizeof bits);
  return value;
}

}  // namespace

extern "C" void gemm_f32(const float* a, const float* b, float* c, int64_t m, int64_t n,
                         int64_t k) {
  thread_local std::vector<float> rounded;
  rounded.assign(b, b + k * n);
  for (float& value : rounded) value = RoundToBf16(value);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) c[i * n + j] = 0.0f;
    for (int64_t p = 0; p < k; ++p) {
      const float scale = RoundToBf16(a[i * k + p]);
      for (int64_t j = 0; j < n; ++j) c[i * n + j] += scale * rounded[p * n + j];
    }
  }
}
