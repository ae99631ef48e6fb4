/* assay-candidate
problem: "vector_add"
language: CPP
label: "sets_timer"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL). Arms a timer that would fire after the call.
*/
#include <sys/time.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  itimerval soon = {};
  soon.it_value.tv_usec = 1000;
  setitimer(ITIMER_REAL, &soon, nullptr);
}
