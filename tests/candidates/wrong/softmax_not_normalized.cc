/* assay-candidate
problem: "softmax"
language: CPP
label: "softmax_not_normalized"
# Expected: INCORRECT (MISMATCH). Leaves out the division.
*/
#include <algorithm>
#include <cmath>
extern "C" void softmax(const float* x, float* y, int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows; ++i, x += cols, y += cols) {
    const float peak = *std::max_element(x, x + cols);
    for (int64_t j = 0; j < cols; ++j) y[j] = std::exp(x[j] - peak);
  }
}
