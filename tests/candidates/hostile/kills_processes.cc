/* assay-candidate
problem: "vector_add"
language: CPP
label: "kills_processes"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL). Signals its parent (signal 0: harmless, should
# the walls be missing).
*/
#include <signal.h>
#include <unistd.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  kill(getppid(), 0);
  kill(-1, 0);
}
