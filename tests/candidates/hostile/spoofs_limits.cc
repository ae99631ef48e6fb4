/* assay-candidate
problem: "vector_add"
language: CPP
label: "spoofs_limits"
# Expected: COMPILE_ERROR (COMPILE_FAILED). Has an error that reads like a limit.
*/
#error g++: internal compiler error: File size limit exceeded signal terminated program as
#error out of memory allocating 65536 bytes
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
