/* assay-candidate
problem: "vector_add"
language: CPP
label: "vector_add_accumulates"
# Expected: INCORRECT (NAN_OUTPUT or OUTPUT_NOT_WRITTEN). Adds to what the output held before
# the call.
*/
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] += a[i] + b[i];
}
