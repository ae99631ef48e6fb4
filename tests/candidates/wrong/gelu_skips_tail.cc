/* assay-candidate
problem: "gelu"
language: CPP
label: "gelu_skips_tail"
# Expected: INCORRECT (OUTPUT_NOT_WRITTEN). Leaves out what does not fill a vector.
*/
#include <cmath>
extern "C" void gelu(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n / 8 * 8; ++i)
    y[i] = 0.5f * x[i] * (1.0f + std::erf(x[i] * 0.70710678f));
}
