/* assay-candidate
problem: "vector_add"
language: CPP
label: "sleeps"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL). Sleeps, to look slow or to wait for a quiet
# moment.
*/
#include <unistd.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  usleep(1);
}
