/* assay-candidate
problem: "vector_add"
language: CPP
label: "vector_add_writes_nothing"
# Expected: INCORRECT (OUTPUT_NOT_WRITTEN). Returns at once.
*/
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  (void)a, (void)b, (void)c, (void)n;
}
