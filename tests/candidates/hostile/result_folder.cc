/* assay-candidate
problem: "vector_add"
language: CPP
label: "result_folder"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL). Leaves a folder where a careless host would look
# for a result.
*/
#include <sys/stat.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  (void)!mkdir("/tmp/result", 0700);
}
