/* assay-candidate
problem: "vector_add"
language: CPP
label: "vector_add_zeros"
# Expected: INCORRECT (MISMATCH). Always answers 0.
*/
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  (void)a, (void)b;
  for (int64_t i = 0; i < n; ++i) c[i] = 0;
}
