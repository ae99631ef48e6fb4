/* assay-candidate
problem: "vector_add"
language: CPP
label: "replays_later"
# Expected: GAMED (STALE_OUTPUT). Honest for 25 calls, then answers with an earlier result.
*/
#include <algorithm>
#include <vector>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  static std::vector<float> kept;
  static int calls = 0;
  if (static_cast<int64_t>(kept.size()) != n || ++calls < 25) {
    kept.resize(n);
    for (int64_t i = 0; i < n; ++i) kept[i] = a[i] + b[i];
  }
  std::copy(kept.begin(), kept.end(), c);
}
