/* assay-candidate
problem: "vector_add"
language: CPP
label: "wrong_prototype"
# Expected: COMPILE_ERROR (WRONG_PROTOTYPE). Another order of arguments.
*/
extern "C" void vector_add(int64_t n, const float* a, const float* b, float* c) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
