/* assay-candidate
problem: "layernorm"
language: CPP
label: "layernorm_cancels"
# Expected: INCORRECT (MISMATCH or NAN_OUTPUT). mean(x^2) - mean^2 in f32: wrong when the mean
# is large.
*/
#include <cmath>
extern "C" void layernorm(const float* x, const float* gamma, const float* beta, float* y,
                          int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows; ++i, x += cols, y += cols) {
    float sum = 0, squares = 0;
    for (int64_t j = 0; j < cols; ++j) {
      sum += x[j];
      squares += x[j] * x[j];
    }
    const float mean = sum / static_cast<float>(cols);
    const float variance = squares / static_cast<float>(cols) - mean * mean;
    const float scale = 1 / std::sqrt(variance + 1e-5f);
    for (int64_t j = 0; j < cols; ++j) y[j] = (x[j] - mean) * scale * gamma[j] + beta[j];
  }
}
