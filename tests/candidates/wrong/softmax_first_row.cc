/* assay-candidate
problem: "softmax"
language: CPP
label: "softmax_first_row"
# Expected: INCORRECT (MISMATCH or NAN_OUTPUT). Uses the sum of the first row for all.
*/
#include <algorithm>
#include <cmath>
extern "C" void softmax(const float* x, float* y, int64_t rows, int64_t cols) {
  double sum = 0;
  for (int64_t i = 0; i < rows; ++i, x += cols, y += cols) {
    const float peak = *std::max_element(x, x + cols);
    for (int64_t j = 0; j < cols; ++j) {
      y[j] = std::exp(x[j] - peak);
      if (i == 0) sum += y[j];
    }
    for (int64_t j = 0; j < cols; ++j) y[j] /= static_cast<float>(sum);
  }
}
