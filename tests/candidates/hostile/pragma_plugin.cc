/* assay-candidate
problem: "vector_add"
language: CPP
label: "pragma_plugin"
# Expected: PASSED. Asks for a plugin and for options by pragma, which no compiler takes from
# there.
*/
#pragma GCC plugin "/tmp/evil.so"
#pragma GCC option("-fplugin=/tmp/evil.so")
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
