/* assay-candidate
problem: "vector_add"
language: CPP
label: "double_fork"
# Expected: RUNTIME_ERROR (PROCESS_CREATION). Leaves a grandchild that belongs to nobody; it
# would end after 30 seconds, should the walls be missing.
*/
#include <unistd.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  if (fork() == 0) {
    if (fork() == 0) sleep(30);
    _exit(0);
  }
}
