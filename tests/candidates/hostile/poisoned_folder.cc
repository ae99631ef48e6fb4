/* assay-candidate
problem: "vector_add"
language: CPP
label: "poisoned_folder"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL). Moves to another folder, from which later code
# would load its own.
*/
#include <unistd.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  (void)!chdir("/tmp");
}
