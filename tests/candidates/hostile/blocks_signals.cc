/* assay-candidate
problem: "vector_add"
language: CPP
label: "blocks_signals"
# Expected: TIMED_OUT (TIMED_OUT). Blocks every signal that can be blocked, then never ends.
*/
#include <signal.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, nullptr);
  for (volatile int x = 0;; x = x + 1) {
  }
}
