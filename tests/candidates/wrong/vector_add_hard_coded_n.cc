/* assay-candidate
problem: "vector_add"
language: CPP
label: "vector_add_hard_coded_n"
# Expected: INCORRECT (OUTPUT_NOT_WRITTEN). Knows only one size.
*/
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  const int64_t m = n < 4096 ? n : 4096;
  for (int64_t i = 0; i < m; ++i) c[i] = a[i] + b[i];
}
