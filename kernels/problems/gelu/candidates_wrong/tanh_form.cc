/* assay-candidate
problem: "gelu"
language: CPP
label: "tanh_form"
*/
// Wrong on purpose: the tanh form is another function.
#include <cmath>

extern "C" void gelu(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    y[i] = 0.5f * x[i] * (1.0f + std::tanh(0.79788456f * (x[i] + 0.044715f * x[i] * x[i] * x[i])));
}
