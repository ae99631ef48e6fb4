/* assay-candidate
problem: "vector_add"
language: CPP
label: "memory_bomb"
# Expected: RESOURCE_EXCEEDED (MEMORY_LIMIT). Touches 4 GiB, twice what a guest may have.
*/
#include <cstdlib>
#include <cstring>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int i = 0; i < 4096; ++i) {
    void* block = std::malloc(1 << 20);
    if (block != nullptr) std::memset(block, i | 1, 1 << 20);
    __asm__ volatile("" : : "r"(block) : "memory");
  }
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
