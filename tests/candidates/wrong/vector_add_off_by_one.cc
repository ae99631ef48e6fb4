/* assay-candidate
problem: "vector_add"
language: CPP
label: "vector_add_off_by_one"
# Expected: INCORRECT (MISMATCH). Takes the neighbour of b.
*/
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i + 1 < n ? i + 1 : i];
}
