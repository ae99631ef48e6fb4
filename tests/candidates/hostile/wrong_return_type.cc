/* assay-candidate
problem: "vector_add"
language: CPP
label: "wrong_return_type"
# Expected: COMPILE_ERROR (WRONG_PROTOTYPE). Returns a value.
*/
extern "C" int vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  return 0;
}
