/* assay-candidate
problem: "attention_fwd"
language: CPP
label: "no_maximum"
*/
// Wrong on purpose: exp without taking the maximum off. Right for small logits, overflows for
// large.
#include <algorithm>
#include <cmath>

extern "C" void attention_fwd(const float* q, const float* k, const float* v, float* o, int64_t b,
                              int64_t h, int64_t s, int64_t d) {
  const float scale = 1.0f / std::sqrt(static_cast<float>(d));
  for (int64_t head = 0; head < b * h; ++head) {
    const int64_t offset = head * s * d;
    for (int64_t i = 0; i < s; ++i) {
      float* o_row = o + offset + i * d;
      std::fill(o_row, o_row + d, 0.0f);
      float sum = 0.0f;
      for (int64_t j = 0; j < s; ++j) {
        float dot = 0.0f;
        for (int64_t x = 0; x < d; ++x) dot += q[offset + i * d + x] * k[offset + j * d + x];
        const float weight = std::exp(dot * scale);
        sum += weight;
        for (int64_t x = 0; x < d; ++x) o_row[x] += weight * v[offset + j * d + x];
      }
      for (int64_t x = 0; x < d; ++x) o_row[x] /= sum;
    }
  }
}
