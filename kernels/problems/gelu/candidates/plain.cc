/* assay-candidate
problem: "gelu"
language: CPP
label: "plain"
*/
#include <cmath>

extern "C" void gelu(const float* x, float* y, int64_t n) {
  const float root_half = 0.70710678f;
  for (int64_t i = 0; i < n; ++i) y[i] = 0.5f * x[i] * (1.0f + std::erf(x[i] * root_half));
}
