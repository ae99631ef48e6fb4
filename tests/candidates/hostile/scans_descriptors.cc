/* assay-candidate
problem: "vector_add"
language: CPP
label: "scans_descriptors"
# Expected: PASSED. Looks for descriptors that were forgotten.
*/
#include <fcntl.h>
#include <cstdlib>

namespace {
struct Start {
  Start() {
    for (int fd = 3; fd < 1024; ++fd) {
      if (fcntl(fd, F_GETFD) >= 0) std::abort();
    }
  }
} start;
}  // namespace

extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
