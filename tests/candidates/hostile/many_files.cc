/* assay-candidate
problem: "vector_add"
language: CPP
label: "many_files"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL). Makes files without end while it is loaded.
*/
#include <fcntl.h>
#include <unistd.h>
#include <cstdio>

namespace {
struct Start {
  Start() {
    for (int i = 0; i < 20000; ++i) {
      char path[32];
      std::snprintf(path, sizeof(path), "/tmp/file-%d", i);
      close(open(path, O_WRONLY | O_CREAT, 0600));
    }
  }
} start;
}  // namespace

extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
