/* assay-candidate
problem: "vector_add"
language: CPP
label: "compiler_pragma"
# Expected: COMPILE_ERROR (COMPILE_FAILED). Asks for a plugin and a precompiled header.
*/
#pragma GCC pch_preprocess "/tmp/evil.gch"
#include "evil.h"
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
