/* assay-candidate
problem: "vector_add"
language: CPP
label: "digraph_include"
# Expected: COMPILE_ERROR (INCLUDE_FORBIDDEN). Includes a file of the host by a digraph.
*/
// clang-format off
%:include "/etc/passwd"
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
