/* assay-candidate
problem: "conv2d_f32"
language: CPP
label: "tf32_operands"
*/
// Wrong on purpose: operands are rounded to the 11 significant bits of tf32.
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

extern "C" void conv2d_f32(const float* x, const float* weight, float* y, int64_t n, int64_t c,
                           int64_t h, int64_t w, int64_t f, int64_t r) {
  const int64_t rows = h - r + 1;
  const int64_t cols = w - r + 1;
  for (int64_t image = 0; image < n; ++image) {
    for (int64_t filter = 0; filter < f; ++filter) {
      for (int64_t p = 0; p < rows; ++p) {
        float* out = y + ((image * f + filter) * rows + p) * cols;
        for (int64_t q = 0; q < cols; ++q) out[q] = 0.0f;
        for (int64_t channel = 0; channel < c; ++channel) {
          for (int64_t s = 0; s < r; ++s) {
            const float* in = x + ((image * c + channel) * h + p + s) * w;
            const float* taps = weight + ((filter * c + channel) * r + s) * r;
            for (int64_t t = 0; t < r; ++t) {
              for (int64_t q = 0; q < cols; ++q) out[q] += Rounded(taps[t]) * Rounded(in[q + t]);
            }
          }
        }
      }
    }
  }
}
