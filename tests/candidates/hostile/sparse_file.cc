/* assay-candidate
problem: "vector_add"
language: CPP
label: "sparse_file"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL). Makes its output a sparse file of 1 TiB.
*/
#include <unistd.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  (void)!ftruncate(1, int64_t{1} << 40);
}
