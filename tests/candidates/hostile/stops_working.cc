/* assay-candidate
problem: "vector_add"
language: CPP
label: "stops_working"
# Expected: INCORRECT (OUTPUT_NOT_WRITTEN). Honest for 25 calls, then returns at once.
*/
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  static int calls = 0;
  if (++calls > 25) return;
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
