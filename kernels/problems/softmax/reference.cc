// Compiled with the prototype of softmax_reference included before it.
#include <algorithm>
#include <cmath>

extern "C" void softmax_reference(const float* x, double* y, int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows; ++i, x += cols, y += cols) {
    const double peak = *std::max_element(x, x + cols);
    double sum = 0;
    for (int64_t j = 0; j < cols; ++j) {
      y[j] = std::exp(x[j] - peak);
      sum += y[j];
    }
    for (int64_t j = 0; j < cols; ++j) y[j] /= sum;
  }
}
