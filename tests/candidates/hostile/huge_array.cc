/* assay-candidate
problem: "vector_add"
language: CPP
label: "huge_array"
# Expected: RESOURCE_EXCEEDED (ARTIFACT_TOO_LARGE). An artifact of 100 MiB.
*/
char table[100 << 20] = {1};
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  c[0] += table[n] * 0;
}
