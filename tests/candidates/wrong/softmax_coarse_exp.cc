/* assay-candidate
problem: "softmax"
language: CPP
label: "softmax_coarse_exp"
# Expected: INCORRECT (MISMATCH). An exponential with three digits.
*/
#include <algorithm>
#include <cmath>
extern "C" void softmax(const float* x, float* y, int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows; ++i, x += cols, y += cols) {
    const float peak = *std::max_element(x, x + cols);
    double sum = 0;
    for (int64_t j = 0; j < cols; ++j) {
      const float t = std::max(0.0f, 1.0f + (x[j] - peak) / 256);
      y[j] = std::pow(t, 256.0f);
      sum += y[j];
    }
    for (int64_t j = 0; j < cols; ++j) y[j] /= static_cast<float>(sum);
  }
}
