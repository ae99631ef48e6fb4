/* assay-candidate
problem: "vector_add"
language: CPP
label: "crash"
# Expected: RUNTIME_ERROR (CRASHED). Stores to the null pointer.
*/
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  *static_cast<volatile int*>(nullptr) = 1;
}
