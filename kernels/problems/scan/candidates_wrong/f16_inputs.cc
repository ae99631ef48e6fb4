/* assay-candidate
problem: "scan"
language: CPP
label: "f16_inputs"
*/
// Wrong on purpose: inputs are rounded to the 11 significant bits of f16.
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

extern "C" void scan(const float* x, float* y, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    sum += Rounded(x[i]);
    y[i] = static_cast<float>(sum);
  }
}
