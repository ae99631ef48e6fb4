/* assay-candidate
problem: "transpose"
language: CPP
label: "plain"
*/
// Blocks of 32 x 32: a line of either tensor is used up before the cache drops it.
#include <algorithm>

extern "C" void transpose(const float* x, float* y, int64_t rows, int64_t cols) {
  constexpr int64_t kBlock = 32;
  for (int64_t i0 = 0; i0 < rows; i0 += kBlock) {
    const int64_t i1 = std::min(i0 + kBlock, rows);
    for (int64_t j0 = 0; j0 < cols; j0 += kBlock) {
      const int64_t j1 = std::min(j0 + kBlock, cols);
      for (int64_t j = j0; j < j1; ++j) {
        for (int64_t i = i0; i < i1; ++i) y[j * rows + i] = x[i * cols + j];
      }
    }
  }
}
