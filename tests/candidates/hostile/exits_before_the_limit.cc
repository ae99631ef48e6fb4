/* assay-candidate
problem: "vector_add"
language: CPP
label: "exits_before_the_limit"
# Expected: RUNTIME_ERROR (EXITED). Works for a while, then ends as if all were well.
*/
#include <time.h>
#include <unistd.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  const clock_t start = clock();
  while (clock() - start < CLOCKS_PER_SEC / 20) {
  }
  _exit(0);
}
