/* assay-candidate
problem: "vector_add"
language: CPP
label: "constructor_forks"
# Expected: RUNTIME_ERROR (PROCESS_CREATION). Forks before the first call.
*/
#include <unistd.h>

namespace {
struct Start {
  Start() {
    if (fork() == 0) _exit(0);
  }
} start;
}  // namespace

extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
