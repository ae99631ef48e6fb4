/* assay-candidate
problem: "vector_add"
language: CPP
label: "moves_core"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL). Leaves the core that it was given.
*/
#include <sched.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  cpu_set_t all;
  CPU_ZERO(&all);
  CPU_SET(0, &all);
  sched_setaffinity(0, sizeof(all), &all);
}
