/* assay-candidate
problem: "vector_add"
language: CPP
label: "signal_handler"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL). Installs a signal handler, to survive its own
# crashes.
*/
#include <signal.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  signal(SIGSEGV, SIG_IGN);
}
