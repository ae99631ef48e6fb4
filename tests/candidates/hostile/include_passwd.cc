/* assay-candidate
problem: "vector_add"
language: CPP
label: "include_passwd"
# Expected: COMPILE_ERROR (INCLUDE_FORBIDDEN). Includes a file of the machine.
*/
#include "/etc/passwd"
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
