/* assay-candidate
problem: "vector_add"
language: CPP
label: "spoofs_killed"
# Expected: COMPILE_ERROR (COMPILE_FAILED). Prints what a machine prints that kills its
# compiler, and fails in a way that no line explains.
*/
asm(".print \"g++: fatal error: Killed signal terminated program cc1plus\"");
asm(".print \"as: File size limit exceeded\"");
asm(".data\n.long vector_add\n.text");
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
