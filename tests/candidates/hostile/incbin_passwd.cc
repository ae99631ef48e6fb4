/* assay-candidate
problem: "vector_add"
language: CPP
label: "incbin_passwd"
# Expected: COMPILE_ERROR (INCLUDE_FORBIDDEN). Has the assembler embed a file of the machine.
*/
__asm__(".section .rodata\n.incbin \"/etc/passwd\"\n.text\n");
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
