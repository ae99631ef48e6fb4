/* assay-candidate
problem: "vector_add"
language: CPP
label: "becomes_daemon"
# Expected: RUNTIME_ERROR (PROCESS_CREATION). Leaves its session for the background.
*/
#include <unistd.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  (void)!daemon(0, 0);
}
