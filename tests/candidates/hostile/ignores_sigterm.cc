/* assay-candidate
problem: "vector_add"
language: CPP
label: "ignores_sigterm"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL). Ignores the polite signals, then never ends.
*/
#include <signal.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  signal(SIGTERM, SIG_IGN);
  for (volatile int x = 0;; x = x + 1) {
  }
}
