/* assay-candidate
problem: "vector_add"
language: CPP
label: "reads_environ"
# Expected: PASSED. Looks for environments of processes while it is loaded.
*/
#include <fcntl.h>
#include <cstdlib>

namespace {
struct Start {
  Start() {
    const char* const paths[] = {"/proc/1/environ", "/proc/self/environ"};
    for (const char* path : paths) {
      if (open(path, O_RDONLY) >= 0) std::abort();
    }
  }
} start;
}  // namespace

extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
