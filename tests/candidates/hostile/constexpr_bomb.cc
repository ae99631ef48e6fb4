/* assay-candidate
problem: "vector_add"
language: CPP
label: "constexpr_bomb"
# Expected: COMPILE_ERROR (COMPILER_LIMIT). A constant that takes for ever to evaluate.
*/
constexpr long Forever() {
  long sum = 0;
  for (long i = 0; i >= 0; ++i) sum ^= i;
  return sum;
}
constexpr long kForever = Forever();
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  c[0] += kForever;
}
