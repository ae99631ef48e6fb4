/* assay-candidate
problem: "vector_add"
language: CPP
label: "timestamp"
# Expected: PASSED. Depends on when it was compiled; does not compile where it could.
*/
constexpr bool IsEpoch(const char* text, const char* want) {
  for (; *want != '\0'; ++text, ++want) {
    if (*text != *want) return false;
  }
  return true;
}
static_assert(IsEpoch(__DATE__, "Jan  1 1970"));
static_assert(IsEpoch(__TIME__, "00:00:00"));
static_assert(IsEpoch(__TIMESTAMP__, "Thu Jan  1 00:00:00 1970"));
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
