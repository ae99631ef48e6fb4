// Sums in fp64, in blocks of k, so that a block of b stays in cache and partial sums stay short.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace {

double Widen(uint16_t half) {
  const double sign = (half & 0x8000) != 0 ? -1.0 : 1.0;
  const int exponent = (half >> 10) & 0x1f;
  const int fraction = half & 0x3ff;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  if (exponent < 31) return sign * std::ldexp(fraction + 0x400, exponent - 25);
  return fraction == 0 ? sign * std::numeric_limits<double>::infinity()
                       : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

extern "C" void gemm_f16_reference(const uint16_t* a, const uint16_t* b, double* c, int64_t m,
                                   int64_t n, int64_t k) {
  constexpr int64_t kDepth = 64;
  constexpr int64_t kCols = 256;
  std::vector<double> a_wide(m * k), b_block(kDepth * kCols);
  std::transform(a, a + m * k, a_wide.begin(), Widen);
  std::fill(c, c + m * n, 0.0);
  for (int64_t j0 = 0; j0 < n; j0 += kCols) {
    const int64_t cols = std::min(kCols, n - j0);
    for (int64_t p0 = 0; p0 < k; p0 += kDepth) {
      const int64_t depth = std::min(kDepth, k - p0);
      for (int64_t p = 0; p < depth; ++p) {
        for (int64_t j = 0; j < cols; ++j) b_block[p * kCols + j] = Widen(b[(p0 + p) * n + j0 + j]);
      }
      for (int64_t i = 0; i < m; ++i) {
        double sum[kCols] = {};
        for (int64_t p = 0; p < depth; ++p) {
          const double scale = a_wide[i * k + p0 + p];
          const double* b_row = &b_block[p * kCols];
          for (int64_t j = 0; j < cols; ++j) sum[j] += scale * b_row[j];
        }
        double* row = c + i * n + j0;
        for (int64_t j = 0; j < cols; ++j) row[j] += sum[j];
      }
    }
  }
}
