/* assay-candidate
problem: "vector_add"
language: CPP
label: "symbolic_link"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL). Leaves a link where a careless host would look
# for a result.
*/
#include <unistd.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  (void)!symlink("/etc/passwd", "/tmp/result");
}
