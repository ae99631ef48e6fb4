/* assay-candidate
problem: "vector_add"
language: CPP
label: "static_entry"
# Expected: COMPILE_ERROR (WRONG_PROTOTYPE or COMPILE_FAILED). The function is not visible
# outside.
*/
static void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
