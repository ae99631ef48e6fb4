/* assay-candidate
problem: "vector_add"
language: CPP
label: "unshares_user"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL). Makes a user namespace, in which it would be
# root.
*/
#include <sched.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  (void)!unshare(CLONE_NEWUSER);
}
