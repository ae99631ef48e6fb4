/* assay-candidate
problem: "vector_add"
language: CPP
label: "spliced_include"
# Expected: COMPILE_ERROR (INCLUDE_FORBIDDEN). Includes a file of the host by a directive on
# several lines.
*/
#inc\
lude /* no */ \
    "/et\
c/passwd"
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
