/* assay-candidate
problem: "vector_add"
language: CPP
label: "stops_itself"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL). Stops itself, so that no wait for its end would
# return.
*/
#include <signal.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  raise(SIGSTOP);
}
