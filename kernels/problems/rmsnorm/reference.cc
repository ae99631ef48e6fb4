// Compiled with the prototype of rmsnorm_reference included before it.
#include <cmath>

extern "C" void rmsnorm_reference(const float* x, const float* weight, double* y, int64_t rows,
                                  int64_t cols) {
  for (int64_t i = 0; i < rows; ++i, x += cols, y += cols) {
    double squares = 0;
    for (int64_t j = 0; j < cols; ++j) squares += double{x[j]} * double{x[j]};
    const double scale = 1 / std::sqrt(squares / static_cast<double>(cols) + 1e-6);
    for (int64_t j = 0; j < cols; ++j) y[j] = x[j] * scale * weight[j];
  }
}
