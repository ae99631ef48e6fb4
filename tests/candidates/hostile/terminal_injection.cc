/* assay-candidate
problem: "vector_add"
language: CPP
label: "terminal_injection"
# Expected: PASSED. Types into the terminal of whoever started the worker.
*/
#include <sys/ioctl.h>
#include <cstdlib>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  char letter = 'x';
  if (ioctl(0, TIOCSTI, &letter) == 0) std::abort();
}
