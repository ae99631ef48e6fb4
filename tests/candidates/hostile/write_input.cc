/* assay-candidate
problem: "vector_add"
language: CPP
label: "write_input"
# Expected: UNDEFINED_BEHAVIOR (INPUT_WRITTEN). Writes into an input.
*/
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  const_cast<volatile float*>(a)[n / 2] = 1;
}
