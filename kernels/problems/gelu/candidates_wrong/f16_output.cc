/* assay-candidate
problem: "gelu"
language: CPP
label: "f16_output"
*/
// Wrong on purpose: results are rounded to the 11 significant bits of f16.
#include <cmath>
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

extern "C" void gelu(const float* x, float* y, int64_t n) {
  const float root_half = 0.70710678f;
  for (int64_t i = 0; i < n; ++i) y[i] = Rounded(0.5f * x[i] * (1.0f + std::erf(x[i] * root_half)));
}
