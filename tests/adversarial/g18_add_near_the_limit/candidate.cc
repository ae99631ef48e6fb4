/* assay-candidate
problem: "vector_add"
language: CPP
label: "g18_add_near_the_limit"
*/
// As fast as memory allows.
extern "C" void vector_add(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
