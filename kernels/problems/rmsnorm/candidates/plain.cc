/* assay-candidate
problem: "rmsnorm"
language: CPP
label: "plain"
*/
#include <cmath>

extern "C" void rmsnorm(const float* x, const float* weight, float* y, int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows; ++i, x += cols, y += cols) {
    double squares = 0;
    for (int64_t j = 0; j < cols; ++j) squares += double{x[j]} * double{x[j]};
    const float scale =
        static_cast<float>(1 / std::sqrt(squares / static_cast<double>(cols) + 1e-6));
    for (int64_t j = 0; j < cols; ++j) y[j] = x[j] * scale * weight[j];
  }
}
