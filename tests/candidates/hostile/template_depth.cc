/* assay-candidate
problem: "vector_add"
language: CPP
label: "template_depth"
# Expected: COMPILE_ERROR (COMPILER_LIMIT). Recurses in templates without end.
*/
template <int kDepth>
struct Deep {
  static constexpr int kValue = Deep<kDepth + 1>::kValue;
};
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  c[0] += Deep<0>::kValue;
}
