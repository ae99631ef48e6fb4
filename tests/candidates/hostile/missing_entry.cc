/* assay-candidate
problem: "vector_add"
language: CPP
label: "missing_entry"
# Expected: COMPILE_ERROR (ENTRY_NOT_FOUND). Defines another function.
*/
extern "C" void vector_sum(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
