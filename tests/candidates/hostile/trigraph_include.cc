/* assay-candidate
problem: "vector_add"
language: CPP
label: "trigraph_include"
# Expected: COMPILE_ERROR (COMPILE_FAILED). Includes a file of the host by a trigraph, which
# this language no longer has.
*/
// clang-format off
??=include "/etc/passwd"
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
