/* assay-candidate
problem: "attention_fwd"
language: CPP
label: "f16_weights"
*/
// Wrong on purpose: weights are rounded to the 11 significant bits of f16.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

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

extern "C" void attention_fwd(const float* q, const float* k, const float* v, float* o, int64_t b,
                              int64_t h, int64_t s, int64_t d) {
  thread_local std::vector<float> weights;
  weights.resize(s);
  const float scale = 1.0f / std::sqrt(static_cast<float>(d));
  for (int64_t head = 0; head < b * h; ++head) {
    const int64_t offset = head * s * d;
    for (int64_t i = 0; i < s; ++i) {
      const float* q_row = q + offset + i * d;
      float* o_row = o + offset + i * d;
      for (int64_t j = 0; j < s; ++j) {
        const float* k_row = k + offset + j * d;
        float dot = 0.0f;
        for (int64_t x = 0; x < d; ++x) dot += q_row[x] * k_row[x];
        weights[j] = dot * scale;
      }
      const float largest = *std::max_element(weights.begin(), weights.end());
      float sum = 0.0f;
      for (int64_t j = 0; j < s; ++j) {
        weights[j] = std::exp(weights[j] - largest);
        sum += weights[j];
      }
      std::fill(o_row, o_row + d, 0.0f);
      for (int64_t j = 0; j < s; ++j) {
        const float weight = Rounded(weights[j] / sum);
        const float* v_row = v + offset + j * d;
        for (int64_t x = 0; x < d; ++x) o_row[x] += weight * v_row[x];
      }
    }
  }
}
