/* assay-candidate
problem: "vector_add"
language: CPP
label: "warning_flood"
# Expected: RESOURCE_EXCEEDED (COMPILE_OUTPUT_FLOOD). A hundred thousand warnings, which nothing
# stops.
*/
#define W0 _Pragma("GCC warning \"a warning of some length, repeated a hundred thousand times\"")
#define W1 W0 W0 W0 W0 W0 W0 W0 W0 W0 W0
#define W2 W1 W1 W1 W1 W1 W1 W1 W1 W1 W1
#define W3 W2 W2 W2 W2 W2 W2 W2 W2 W2 W2
#define W4 W3 W3 W3 W3 W3 W3 W3 W3 W3 W3
#define W5 W4 W4 W4 W4 W4 W4 W4 W4 W4 W4
W5 extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
