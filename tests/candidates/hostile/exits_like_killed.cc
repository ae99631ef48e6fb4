/* assay-candidate
problem: "vector_add"
language: CPP
label: "exits_like_killed"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL). Ends with the code that a kill from outside
# gives, so that its end would be the machine's fault.
*/
#include <unistd.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  _exit(128 + 9);
}
