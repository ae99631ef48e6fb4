/* assay-candidate
problem: "vector_add"
language: CPP
label: "unaligned"
# Expected: RUNTIME_ERROR (CRASHED). An aligned store to an address that is not.
*/
#include <immintrin.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  if (n > 16) _mm256_store_ps(c + 1, _mm256_add_ps(_mm256_loadu_ps(a + 1), _mm256_loadu_ps(b + 1)));
}
