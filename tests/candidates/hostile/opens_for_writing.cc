/* assay-candidate
problem: "vector_add"
language: CPP
label: "opens_for_writing"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL). Opens a file of the toolchain for writing while
# it is loaded.
*/
#include <fcntl.h>
#include <unistd.h>

namespace {
struct Start {
  Start() { close(open("/usr/lib/os-release", O_RDWR)); }
} start;
}  // namespace

extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
