/* assay-candidate
problem: "rmsnorm"
language: CPP
label: "rmsnorm_epsilon_outside"
# Expected: INCORRECT (MISMATCH). Adds the epsilon to the root.
*/
#include <cmath>
extern "C" void rmsnorm(const float* x, const float* weight, float* y, int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows; ++i, x += cols, y += cols) {
    const double mean = 0;
    double squares = 0;
    for (int64_t j = 0; j < cols; ++j) squares += (x[j] - mean) * (x[j] - mean);
    const double scale = 1 / (std::sqrt(squares / static_cast<double>(cols)) + 1e-6);
    for (int64_t j = 0; j < cols; ++j) y[j] = static_cast<float>((x[j] - mean) * scale) * weight[j];
  }
}
