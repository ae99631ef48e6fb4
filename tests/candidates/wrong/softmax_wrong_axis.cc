/* assay-candidate
problem: "softmax"
language: CPP
label: "softmax_wrong_axis"
# Expected: INCORRECT (MISMATCH). Normalises columns.
*/
#include <algorithm>
#include <cmath>
extern "C" void softmax(const float* x, float* y, int64_t rows, int64_t cols) {
  for (int64_t j = 0; j < cols; ++j) {
    float peak = x[j];
    for (int64_t i = 0; i < rows; ++i) peak = std::max(peak, x[i * cols + j]);
    double sum = 0;
    for (int64_t i = 0; i < rows; ++i) sum += std::exp(x[i * cols + j] - peak);
    for (int64_t i = 0; i < rows; ++i) {
      y[i * cols + j] = static_cast<float>(std::exp(x[i * cols + j] - peak) / sum);
    }
  }
}
