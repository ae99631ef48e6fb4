/* assay-candidate
problem: "vector_add"
language: CPP
label: "read_after_page"
# Expected: UNDEFINED_BEHAVIOR (OUT_OF_BOUNDS). Reads a page past the end of an input.
*/
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  c[0] = static_cast<const volatile float*>(a)[n + 1024];
}
