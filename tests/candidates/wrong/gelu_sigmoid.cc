/* assay-candidate
problem: "gelu"
language: CPP
label: "gelu_sigmoid"
# Expected: INCORRECT (MISMATCH). The sigmoid form.
*/
#include <cmath>
extern "C" void gelu(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] / (1.0f + std::exp(-1.702f * x[i]));
}
