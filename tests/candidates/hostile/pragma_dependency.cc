/* assay-candidate
problem: "vector_add"
language: CPP
label: "pragma_dependency"
# Expected: COMPILE_ERROR (COMPILE_FAILED). Asks when a file of the host was changed.
*/
#pragma GCC dependency "/etc/shadow"
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
