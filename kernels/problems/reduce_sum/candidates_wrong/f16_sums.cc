/* assay-candidate
problem: "reduce_sum"
language: CPP
label: "f16_sums"
*/
// Wrong on purpose: partial sums of 32 are rounded to the 11 significant bits of f16.
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

extern "C" void reduce_sum(const float* x, float* y, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i += 32) {
    float part = 0;
    for (int64_t j = i; j < n && j < i + 32; ++j) part = Rounded(part + x[j]);
    sum += part;
  }
  *y = static_cast<float>(sum);
}
