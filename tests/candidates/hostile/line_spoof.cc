/* assay-candidate
problem: "vector_add"
language: CPP
label: "line_spoof"
# Expected: COMPILE_ERROR (COMPILE_FAILED). Blames its error on another file.
*/
#line 1 "/etc/shadow"
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  surely_not_declared();
}
