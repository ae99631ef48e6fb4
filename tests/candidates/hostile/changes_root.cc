/* assay-candidate
problem: "vector_add"
language: CPP
label: "changes_root"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL). Takes another root folder.
*/
#include <unistd.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  (void)!chroot("/tmp");
}
