/* assay-candidate
problem: "topk"
language: CPP
label: "topk_ties_by_higher_index"
# Expected: INCORRECT (MISMATCH). Prefers the later of equal elements.
*/
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>
extern "C" void topk(const float* x, float* values, int32_t* indices, int64_t rows, int64_t cols,
                     int64_t k) {
  std::vector<int32_t> order(cols);
  for (int64_t i = 0; i < rows; ++i, x += cols, values += k, indices += k) {
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + k, order.end(),
                      [x](int32_t a, int32_t b) { return x[a] > x[b] || (x[a] == x[b] && a > b); });
    for (int64_t j = 0; j < k; ++j) {
      values[j] = x[order[j]];
      indices[j] = order[j];
    }
  }
}
