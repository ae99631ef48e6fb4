/* assay-candidate
problem: "vector_add"
language: CPP
label: "defines_invoke"
# Expected: COMPILE_ERROR (RESERVED_NAME). Defines the function that the harness calls, and never works.
*/
extern "C" void assay_invoke(void* const*, const int64_t*) {}
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
