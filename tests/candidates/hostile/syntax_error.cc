/* assay-candidate
problem: "vector_add"
language: CPP
label: "syntax_error"
# Expected: COMPILE_ERROR (COMPILE_FAILED). A semicolon is missing in line 8.
*/
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i]
}
