/* assay-candidate
problem: "vector_add"
language: CPP
label: "locks_memory"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL). Takes memory that cannot be swapped.
*/
#include <sys/mman.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  mlockall(MCL_CURRENT | MCL_FUTURE);
}
