/* assay-candidate
problem: "gemv_w2a8"
language: CPP
label: "f16_scales"
*/
// Wrong on purpose: scales are rounded to the 11 significant bits of f16.
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

extern "C" void gemv_w2a8(const uint8_t* w_packed, const float* w_scale, const int8_t* x,
                          const float* x_scale, float* y, int64_t n, int64_t k) {
  for (int64_t j = 0; j < n; ++j) {
    const uint8_t* row = w_packed + j * (k / 4);
    int32_t sum = 0;
    for (int64_t i = 0; i < k / 4; ++i) {
      const int32_t codes = row[i];
      sum += ((codes & 3) - 1) * x[4 * i];
      sum += (((codes >> 2) & 3) - 1) * x[4 * i + 1];
      sum += (((codes >> 4) & 3) - 1) * x[4 * i + 2];
      sum += (((codes >> 6) & 3) - 1) * x[4 * i + 3];
    }
    y[j] = static_cast<float>(sum) * Rounded(w_scale[j]) * Rounded(x_scale[0]);
  }
}
