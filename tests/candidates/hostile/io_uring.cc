/* assay-candidate
problem: "vector_add"
language: CPP
label: "io_uring"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL). Sets up a ring whose operations no system call
# filter sees.
*/
#include <sys/syscall.h>
#include <unistd.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  char parameters[256] = {};
  (void)!syscall(SYS_io_uring_setup, 1, parameters);
}
