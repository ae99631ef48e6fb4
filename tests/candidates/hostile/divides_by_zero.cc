/* assay-candidate
problem: "vector_add"
language: CPP
label: "divides_by_zero"
# Expected: RUNTIME_ERROR (CRASHED). Divides an integer by zero.
*/
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  volatile int zero = 0;
  c[0] = static_cast<float>(static_cast<int>(n) / zero);
}
