// Exact integer sums (they fit int32 for every k that the problem accepts), then fp64.
#include <cstdint>
#include <vector>

extern "C" void gemv_w2a8_reference(const uint8_t* w_packed, const float* w_scale, const int8_t* x,
                                    const float* x_scale, double* y, int64_t n, int64_t k) {
  const int64_t bytes = k / 4;
  // plane[t][i] = x[4 i + t], the activation of code t of byte i.
  std::vector<int32_t> plane[4];
  for (int64_t t = 0; t < 4; ++t) {
    plane[t].resize(bytes);
    for (int64_t i = 0; i < bytes; ++i) plane[t][i] = x[4 * i + t];
  }
  for (int64_t j = 0; j < n; ++j) {
    const uint8_t* row = w_packed + j * bytes;
    int32_t sum = 0;
    for (int64_t t = 0; t < 4; ++t) {
      const int32_t* values = plane[t].data();
      const int shift = static_cast<int>(2 * t);
      for (int64_t i = 0; i < bytes; ++i) sum += (((row[i] >> shift) & 3) - 1) * values[i];
    }
    y[j] = static_cast<double>(sum) * w_scale[j] * x_scale[0];
  }
}
