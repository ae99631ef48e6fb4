/* assay-candidate
problem: "vector_add"
language: CPP
label: "illegal_instruction"
# Expected: RUNTIME_ERROR (CRASHED). Executes an undefined instruction.
*/
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  __asm__ volatile("ud2");
}
