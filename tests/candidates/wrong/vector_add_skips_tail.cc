/* assay-candidate
problem: "vector_add"
language: CPP
label: "vector_add_skips_tail"
# Expected: INCORRECT (OUTPUT_NOT_WRITTEN). Leaves out what does not fill a vector.
*/
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n / 8 * 8; ++i) c[i] = a[i] + b[i];
}
