// The definition itself: one chain of f32 fused multiply-adds per element, ascending k, from +0.
// Blocks of columns keep b in cache; they do not touch the order within an element.
#include <algorithm>
#include <cmath>
#include <cstdint>

extern "C" void gemm_ordered_f32_reference(const float* a, const float* b, float* c, int64_t m,
                                           int64_t n, int64_t k) {
  constexpr int64_t kCols = 64;
  for (int64_t j0 = 0; j0 < n; j0 += kCols) {
    const int64_t cols = std::min(kCols, n - j0);
    for (int64_t i = 0; i < m; ++i) {
      float chain[kCols] = {};
      for (int64_t p = 0; p < k; ++p) {
        const float scale = a[i * k + p];
        const float* b_row = b + p * n + j0;
        if (cols == kCols) {
          for (int64_t j = 0; j < kCols; ++j) chain[j] = std::fma(scale, b_row[j], chain[j]);
        } else {
          for (int64_t j = 0; j < cols; ++j) chain[j] = std::fma(scale, b_row[j], chain[j]);
        }
      }
      std::copy(chain, chain + cols, c + i * n + j0);
    }
  }
}
