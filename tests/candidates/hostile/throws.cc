/* assay-candidate
problem: "vector_add"
language: CPP
label: "throws"
# Expected: RUNTIME_ERROR (CRASHED). Throws through the C function.
*/
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  throw 1;
}
