/* assay-candidate
problem: "vector_add"
language: CPP
label: "alternates"
# Expected: NONDETERMINISTIC (MISMATCH). Wrong in every third call.
*/
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  static int calls = 0;
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  if (++calls % 3 == 0) c[n / 2] += 1;
}
