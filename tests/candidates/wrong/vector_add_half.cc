/* assay-candidate
problem: "vector_add"
language: CPP
label: "vector_add_half"
# Expected: INCORRECT (MISMATCH). Computes in half precision.
*/
#include <immintrin.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = _cvtsh_ss(_cvtss_sh(a[i] + b[i], 0));
}
