/* assay-candidate
problem: "vector_add"
language: CPP
label: "vector_add_swaps_ends"
# Expected: INCORRECT (MISMATCH). The first and the last element are exchanged.
*/
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  const float first = c[0];
  c[0] = c[n - 1];
  c[n - 1] = first;
}
