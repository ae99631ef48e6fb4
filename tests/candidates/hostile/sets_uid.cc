/* assay-candidate
problem: "vector_add"
language: CPP
label: "sets_uid"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL). Becomes root.
*/
#include <unistd.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  (void)!setuid(0);
}
