/* assay-candidate
problem: "vector_add"
language: CPP
label: "read_far"
# Expected: RUNTIME_ERROR (CRASHED). Reads an address that no process can have.
*/
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  c[0] = *reinterpret_cast<const volatile float*>(uintptr_t{0x8000000000000000});
}
