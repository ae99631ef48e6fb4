/* assay-candidate
problem: "topk"
language: CPP
label: "plain"
*/
// A heap of the k best so far, its worst on top; most elements cost one comparison.
#include <algorithm>
#include <vector>

namespace {
struct Entry {
  float value;
  int32_t index;
};
bool Before(const Entry& a, const Entry& b) {
  return a.value > b.value || (a.value == b.value && a.index < b.index);
}
}  // namespace

extern "C" void topk(const float* x, float* values, int32_t* indices, int64_t rows, int64_t cols,
                     int64_t k) {
  std::vector<Entry> heap(k);
  for (int64_t i = 0; i < rows; ++i, x += cols, values += k, indices += k) {
    for (int64_t j = 0; j < k; ++j) heap[j] = {x[j], static_cast<int32_t>(j)};
    std::make_heap(heap.begin(), heap.end(), Before);
    for (int64_t j = k; j < cols; ++j) {
      if (!(x[j] > heap.front().value)) continue;  // an equal value at a higher index loses
      std::pop_heap(heap.begin(), heap.end(), Before);
      heap.back() = {x[j], static_cast<int32_t>(j)};
      std::push_heap(heap.begin(), heap.end(), Before);
    }
    std::sort_heap(heap.begin(), heap.end(), Before);
    for (int64_t j = 0; j < k; ++j) {
      values[j] = heap[j].value;
      indices[j] = heap[j].index;
    }
  }
}
