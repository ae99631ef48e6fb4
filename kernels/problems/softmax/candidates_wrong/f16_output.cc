/* assay-candidate
problem: "softmax"
language: CPP
label: "f16_output"
*/
// Wrong on purpose: results are rounded to the 11 significant bits of f16.
#include <algorithm>
#include <cmath>
#include <cstring>

namespace {

// To 11 significant bits, ties to even.
float Rounded(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  bits += 0x0fff + ((bits >> 13) & 1);
  bits &= ~uint32_t{0x1fff};
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace

extern "C" void softmax(const float* x, float* y, int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows; ++i, x += cols, y += cols) {
    const float peak = *std::max_element(x, x + cols);
    double sum = 0;
    for (int64_t j = 0; j < cols; ++j) {
      y[j] = std::exp(x[j] - peak);
      sum += y[j];
    }
    const float factor = static_cast<float>(1 / sum);
    for (int64_t j = 0; j < cols; ++j) y[j] = Rounded(y[j] * factor);
  }
}
