/* assay-candidate
problem: "vector_add"
language: CPP
label: "reads_stdin"
# Expected: PASSED. Waits for standard input, which has to be at its end.
*/
#include <unistd.h>
#include <cstdlib>

namespace {
struct Start {
  Start() {
    char byte;
    if (read(0, &byte, 1) != 0) std::abort();
  }
} start;
}  // namespace

extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
