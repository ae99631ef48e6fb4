/* assay-candidate
problem: "vector_add"
language: CPP
label: "unclosed_text"
# Expected: COMPILE_ERROR (COMPILE_FAILED). A raw string that never ends.
*/
const char* text = R"end(
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
