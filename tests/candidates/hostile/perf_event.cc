/* assay-candidate
problem: "vector_add"
language: CPP
label: "perf_event"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL). Counts events of the whole machine.
*/
#include <sys/syscall.h>
#include <unistd.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  char attributes[128] = {};
  (void)!syscall(SYS_perf_event_open, attributes, -1, 0, -1, 0);
}
