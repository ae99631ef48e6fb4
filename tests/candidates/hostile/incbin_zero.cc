/* assay-candidate
problem: "vector_add"
language: CPP
label: "incbin_zero"
# Expected: COMPILE_ERROR (INCLUDE_FORBIDDEN). Takes in a device without end.
*/
asm(".incbin \"/dev/zero\"");
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
