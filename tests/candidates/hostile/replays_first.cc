/* assay-candidate
problem: "vector_add"
language: CPP
label: "replays_first"
# Expected: INCORRECT (MISMATCH). Computes once and answers every later call with that.
*/
#include <algorithm>
#include <vector>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  static std::vector<float> kept;
  if (static_cast<int64_t>(kept.size()) != n) {
    kept.resize(n);
    for (int64_t i = 0; i < n; ++i) kept[i] = a[i] + b[i];
  }
  std::copy(kept.begin(), kept.end(), c);
}
