/* assay-candidate
problem: "vector_add"
language: CPP
label: "sets_clock"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL). Tries to set the clock (to an invalid time,
# should the walls be missing).
*/
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  const timespec invalid = {0, -1};
  syscall(SYS_clock_settime, CLOCK_REALTIME, &invalid);
}
