/* assay-candidate
problem: "vector_add"
language: CPP
label: "exit_zero"
# Expected: RUNTIME_ERROR (EXITED). Ends its process as if all were well.
*/
#include <cstdlib>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  std::exit(0);
}
