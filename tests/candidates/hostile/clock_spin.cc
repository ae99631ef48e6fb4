/* assay-candidate
problem: "vector_add"
language: CPP
label: "clock_spin"
# Expected: TIMED_OUT (TIMED_OUT). Reads the clock until the limit is over.
*/
#include <time.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  for (int64_t calls = 0; calls >= 0; ++calls) {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec < 0) c[0] = 0;
  }
}
