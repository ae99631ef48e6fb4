/* assay-candidate
problem: "vector_add"
language: CPP
label: "executes"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL). Replaces itself by another program.
*/
#include <unistd.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  execl("/bin/sh", "sh", "-c", "exit 0", nullptr);
}
