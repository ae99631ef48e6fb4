/* assay-candidate
problem: "vector_add"
language: CPP
label: "output_flood"
# Expected: RESOURCE_EXCEEDED (OUTPUT_FLOOD). Prints 64 MiB.
*/
#include <cstdio>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  for (int i = 0; i < (1 << 20); ++i) {
    std::puts("a line of sixty-three bytes that is repeated a million times...");
  }
}
