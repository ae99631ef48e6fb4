/* assay-candidate
problem: "vector_add"
language: CPP
label: "write_before_page"
# Expected: UNDEFINED_BEHAVIOR (OUT_OF_BOUNDS). Writes a page before the output.
*/
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  static_cast<volatile float*>(c)[-1024] = 1;
}
