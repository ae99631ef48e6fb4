/* assay-candidate
problem: "vector_add"
language: CPP
label: "reopens_descriptors"
# Expected: PASSED. Opens its descriptors anew while it is loaded, to write what it may read.
*/
#include <fcntl.h>
#include <cstdlib>

namespace {
struct Start {
  Start() {
    const char* const paths[] = {"/proc/self/fd/1", "/proc/self/fd/3", "/dev/fd/1", "/dev/stdout"};
    for (const char* path : paths) {
      if (open(path, O_RDONLY) >= 0) std::abort();
    }
  }
} start;
}  // namespace

extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
