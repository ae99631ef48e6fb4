/* assay-candidate
problem: "vector_add"
language: CPP
label: "asm_fill"
# Expected: RESOURCE_EXCEEDED (COMPILE_FILE_SIZE). Has the assembler write 4 GB.
*/
asm(".data\n.fill 4000000000\n.text");
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
