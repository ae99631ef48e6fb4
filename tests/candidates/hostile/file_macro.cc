/* assay-candidate
problem: "vector_add"
language: CPP
label: "file_macro"
# Expected: PASSED. Asks where it lies; does not compile where it learns a path of the host.
*/
static_assert(__FILE__[0] != '/');
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
