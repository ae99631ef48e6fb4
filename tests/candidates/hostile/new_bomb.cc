/* assay-candidate
problem: "vector_add"
language: CPP
label: "new_bomb"
# Expected: RESOURCE_EXCEEDED (MEMORY_LIMIT). Asks for 64 TiB at once.
*/
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  char* block = new char[int64_t{1} << 46];
  block[0] = 1;
  __asm__ volatile("" : : "r"(block) : "memory");
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
