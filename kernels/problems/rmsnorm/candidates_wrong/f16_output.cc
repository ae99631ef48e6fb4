/* assay-candidate
problem: "rmsnorm"
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

extern "C" void rmsnorm(const float* x, const float* weight, float* y, int64_t rows, int64_t cols) {
  for (int64_t i = 0; i < rows; ++i, x += cols, y += cols) {
    double squares = 0;
    for (int64_t j = 0; j < cols; ++j) squares += double{x[j]} * double{x[j]};
    const float scale =
        static_cast<float>(1 / std::sqrt(squares / static_cast<double>(cols) + 1e-6));
    for (int64_t j = 0; j < cols; ++j) y[j] = Rounded(x[j] * scale * weight[j]);
  }
}
