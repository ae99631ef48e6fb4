/* assay-candidate
problem: "layernorm"
language: CPP
label: "f16_output"
*/
// Wrong on purpose: results are rounded to the 11 significant bits of f16.
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

extern "C" void layernorm(const float* x, const float* gamma, const float* beta, float* y,
                          int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows; ++i, x += cols, y += cols) {
    double sum = 0;
    for (int64_t j = 0; j < cols; ++j) sum += x[j];
    const double mean = sum / static_cast<double>(cols);
    double squares = 0;
    for (int64_t j = 0; j < cols; ++j) squares += (x[j] - mean) * (x[j] - mean);
    const double scale = 1 / std::sqrt(squares / static_cast<double>(cols) + 1e-5);
    for (int64_t j = 0; j < cols; ++j) {
      y[j] = Rounded(static_cast<float>((x[j] - mean) * scale) * gamma[j] + beta[j]);
    }
  }
}
