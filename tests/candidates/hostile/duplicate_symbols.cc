/* assay-candidate
problem: "vector_add"
language: CPP
label: "duplicate_symbols"
# Expected: COMPILE_ERROR (COMPILE_FAILED). Defines its function twice, once in assembler.
*/
asm(".globl vector_add\nvector_add: ret");
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
