/* assay-candidate
problem: "vector_add"
language: CPP
label: "preload_environment"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL). Changes what the loader reads of the environment
# and starts itself anew.
*/
#include <unistd.h>
#include <cstdlib>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  setenv("LD_PRELOAD", "/tmp/other.so", 1);
  setenv("GLIBC_TUNABLES", "glibc.malloc.check=3", 1);
  execve("/assay-guest", environ, environ);
}
