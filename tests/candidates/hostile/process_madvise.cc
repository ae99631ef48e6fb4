/* assay-candidate
problem: "vector_add"
language: CPP
label: "process_madvise"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL). Reaches for another process by its descriptor.
*/
#include <sys/syscall.h>
#include <unistd.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  (void)!syscall(SYS_pidfd_open, 1, 0);
}
