// fp64 throughout, one head at a time: all logits of a query row, their exact maximum, then the
// weighted sum. k is transposed once for each head, so that the inner loops vectorise.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace {

// Rows [i0, i1) of one head; the loops over keys run for the whole block of rows while a row of
// k or v is in cache.
void HeadRows(const float* q, const double* k_transposed, const double* v, double* o, int64_t i0,
              int64_t i1, int64_t s, int64_t d, double* logits) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(d));
  std::fill(logits, logits + (i1 - i0) * s, 0.0);
  for (int64_t x = 0; x < d; ++x) {
    const double* k_row = k_transposed + x * s;
    for (int64_t i = i0; i < i1; ++i) {
      const double value = q[i * d + x];
      double* row = logits + (i - i0) * s;
      for (int64_t j = 0; j < s; ++j) row[j] += value * k_row[j];
    }
  }
  for (int64_t i = i0; i < i1; ++i) {
    double* row = logits + (i - i0) * s;
    const double largest = *std::max_element(row, row + s);
    double sum = 0.0;
    for (int64_t j = 0; j < s; ++j) {
      row[j] = std::exp((row[j] - largest) * scale);
      sum += row[j];
    }
    for (int64_t j = 0; j < s; ++j) row[j] /= sum;
    std::fill(o + i * d, o + (i + 1) * d, 0.0);
  }
  for (int64_t j = 0; j < s; ++j) {
    const double* v_row = v + j * d;
    for (int64_t i = i0; i < i1; ++i) {
      const double weight = logits[(i - i0) * s + j];
      double* o_row = o + i * d;
      for (int64_t x = 0; x < d; ++x) o_row[x] += weight * v_row[x];
    }
  }
}

}  // namespace

extern "C" void attention_fwd_reference(const float* q, const float* k, const float* v, double* o,
                                        int64_t b, int64_t h, int64_t s, int64_t d) {
  constexpr int64_t kRows = 8;
  std::vector<double> k_transposed(d * s), v_wide(s * d), logits(kRows * s);
  for (int64_t head = 0; head < b * h; ++head) {
    const int64_t offset = head * s * d;
    for (int64_t j = 0; j < s; ++j) {
      for (int64_t x = 0; x < d; ++x) {
        k_transposed[x * s + j] = k[offset + j * d + x];
        v_wide[j * d + x] = v[offset + j * d + x];
      }
    }
    for (int64_t i = 0; i < s; i += kRows) {
      HeadRows(q + offset, k_transposed.data(), v_wide.data(), o + offset, i,
               std::min(s, i + kRows), s, d, logits.data());
    }
  }
}
