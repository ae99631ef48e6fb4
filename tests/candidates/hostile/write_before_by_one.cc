/* assay-candidate
problem: "vector_add"
language: CPP
label: "write_before_by_one"
# Expected: UNDEFINED_BEHAVIOR (CANARY_BROKEN or OUT_OF_BOUNDS). Writes one element before the
# output.
*/
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  static_cast<volatile float*>(c)[-1] = 1;
}
