/* assay-candidate
problem: "vector_add"
language: CPP
label: "big_initializer"
# Expected: RESOURCE_EXCEEDED (COMPILE_MEMORY or COMPILE_TIMEOUT). An array with 270 million
# initialisers.
*/
#define A16(x) x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x
const int table[] = {A16(A16(A16(A16(A16(A16(A16(1)))))))};
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  c[0] += table[n] * 0;
}
