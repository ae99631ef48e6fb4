/* assay-candidate
problem: "layernorm"
language: CPP
label: "layernorm_unbiased"
# Expected: INCORRECT (MISMATCH). Divides by cols - 1.
*/
#include <cmath>
extern "C" void layernorm(const float* x, const float* gamma, const float* beta, float* y,
                          int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows; ++i, x += cols, y += cols) {
    double sum = 0, squares = 0;
    for (int64_t j = 0; j < cols; ++j) sum += x[j];
    const double mean = sum / static_cast<double>(cols);
    for (int64_t j = 0; j < cols; ++j) squares += (x[j] - mean) * (x[j] - mean);
    const double scale =
        1 / std::sqrt(squares / static_cast<double>(cols > 1 ? cols - 1 : 1) + 1e-5);
    for (int64_t j = 0; j < cols; ++j)
      y[j] = static_cast<float>((x[j] - mean) * scale) * gamma[j] + beta[j];
  }
}
