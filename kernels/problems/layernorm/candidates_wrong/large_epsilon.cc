/* assay-candidate
problem: "layernorm"
language: CPP
label: "large_epsilon"
*/
// Wrong on purpose: the epsilon is 1e-3 and not 1e-5.
#include <cmath>

extern "C" void layernorm(const float* x, const float* gamma, const float* beta, float* y,
                          int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows; ++i, x += cols, y += cols) {
    double sum = 0;
    for (int64_t j = 0; j < cols; ++j) sum += x[j];
    const double mean = sum / static_cast<double>(cols);
    double squares = 0;
    for (int64_t j = 0; j < cols; ++j) squares += (x[j] - mean) * (x[j] - mean);
    const double scale = 1 / std::sqrt(squares / static_cast<double>(cols) + 1e-3);
    for (int64_t j = 0; j < cols; ++j) {
      y[j] = static_cast<float>((x[j] - mean) * scale) * gamma[j] + beta[j];
    }
  }
}
