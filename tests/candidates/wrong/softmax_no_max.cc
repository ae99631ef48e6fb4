/* assay-candidate
problem: "softmax"
language: CPP
label: "softmax_no_max"
# Expected: INCORRECT (NAN_OUTPUT or MISMATCH). Does not subtract the maximum: right until
# logits are large.
*/
#include <algorithm>
#include <cmath>
extern "C" void softmax(const float* x, float* y, int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows; ++i, x += cols, y += cols) {
    const float peak = 0;
    double sum = 0;
    for (int64_t j = 0; j < cols; ++j) {
      y[j] = std::exp(x[j] - peak);
      sum += y[j];
    }
    for (int64_t j = 0; j < cols; ++j) y[j] /= static_cast<float>(sum);
  }
}
