/* assay-candidate
problem: "vector_add"
language: CPP
label: "vector_add_one_element"
# Expected: INCORRECT (MISMATCH). One element has the wrong sign.
*/
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  c[n / 3] = -c[n / 3];
}
