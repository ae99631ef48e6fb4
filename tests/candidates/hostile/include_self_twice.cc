/* assay-candidate
problem: "vector_add"
language: CPP
label: "include_self_twice"
# Expected: COMPILE_ERROR (COMPILER_LIMIT). Includes itself twice, and so on.
*/
#include __FILE__
#include __FILE__
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
