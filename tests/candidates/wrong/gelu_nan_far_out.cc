/* assay-candidate
problem: "gelu"
language: CPP
label: "gelu_nan_far_out"
# Expected: INCORRECT (NAN_OUTPUT). Computes x^3 e^-x^2 terms, which are inf times 0 for huge x.
*/
#include <cmath>
extern "C" void gelu(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const float zero = std::exp(-x[i] * x[i]);
    const float huge = std::exp(std::fabs(x[i]) * 1e-4f) - 1.0f;
    y[i] = 0.5f * x[i] * (1.0f + std::erf(x[i] * 0.70710678f)) +
           zero * (huge > 1e30f ? huge * 1e30f * 1e30f : 0.0f);
  }
}
