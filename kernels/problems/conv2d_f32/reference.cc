// The definition in fp64; the innermost loop runs along a row of the output.
#include <cstdint>
#include <vector>

extern "C" void conv2d_f32_reference(const float* x, const float* weight, double* y, int64_t n,
                                     int64_t c, int64_t h, int64_t w, int64_t f, int64_t r) {
  const int64_t rows = h - r + 1;
  const int64_t cols = w - r + 1;
  std::vector<double> wide(c * h * w);
  for (int64_t image = 0; image < n; ++image) {
    for (int64_t i = 0; i < c * h * w; ++i) wide[i] = x[image * c * h * w + i];
    for (int64_t filter = 0; filter < f; ++filter) {
      double* out = y + (image * f + filter) * rows * cols;
      for (int64_t i = 0; i < rows * cols; ++i) out[i] = 0.0;
      for (int64_t channel = 0; channel < c; ++channel) {
        const float* taps = weight + (filter * c + channel) * r * r;
        for (int64_t p = 0; p < rows; ++p) {
          double* out_row = out + p * cols;
          for (int64_t s = 0; s < r; ++s) {
            for (int64_t t = 0; t < r; ++t) {
              const double tap = taps[s * r + t];
              const double* in = wide.data() + (channel * h + p + s) * w + t;
              for (int64_t q = 0; q < cols; ++q) out_row[q] += tap * in[q];
            }
          }
        }
      }
    }
  }
}
