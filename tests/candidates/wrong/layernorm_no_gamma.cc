/* assay-candidate
problem: "layernorm"
language: CPP
label: "layernorm_no_gamma"
# Expected: INCORRECT (MISMATCH). Leaves out gamma.
*/
#include <cmath>
extern "C" void layernorm(const float* x, const float* gamma, const float* beta, float* y,
                          int64_t rows, int64_t cols) {
  (void)gamma;
  for (int64_t i = 0; i < rows; ++i, x += cols, y += cols) {
    double sum = 0, squares = 0;
    for (int64_t j = 0; j < cols; ++j) sum += x[j];
    const double mean = sum / static_cast<double>(cols);
    for (int64_t j = 0; j < cols; ++j) squares += (x[j] - mean) * (x[j] - mean);
    const double scale = 1 / std::sqrt(squares / static_cast<double>(cols) + 1e-5);
    for (int64_t j = 0; j < cols; ++j) y[j] = static_cast<float>((x[j] - mean) * scale) + beta[j];
  }
}
