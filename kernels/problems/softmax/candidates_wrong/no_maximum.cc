/* assay-candidate
problem: "softmax"
language: CPP
label: "no_maximum"
*/
// Wrong on purpose: without the maximum taken off, exp overflows and underflows.
#include <algorithm>
#include <cmath>

extern "C" void softmax(const float* x, float* y, int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows; ++i, x += cols, y += cols) {
    double sum = 0;
    for (int64_t j = 0; j < cols; ++j) {
      y[j] = std::exp(x[j]);
      sum += y[j];
    }
    const float factor = static_cast<float>(1 / sum);
    for (int64_t j = 0; j < cols; ++j) y[j] *= factor;
  }
}
