/* assay-candidate
problem: "vector_add"
language: CPP
label: "fifo"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL). Leaves a pipe on which a careless host would
# hang.
*/
#include <sys/stat.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  (void)!mkfifo("/tmp/result", 0600);
}
