/* assay-candidate
problem: "vector_add"
language: CPP
label: "template_bomb"
# Expected: RESOURCE_EXCEEDED (COMPILE_MEMORY or COMPILE_TIMEOUT). Two to the 60th
# instantiations.
*/
template <int kDepth, unsigned long long kPath>
struct Bomb {
  static constexpr int kValue =
      Bomb<kDepth - 1, 2 * kPath>::kValue + Bomb<kDepth - 1, 2 * kPath + 1>::kValue;
};
template <unsigned long long kPath>
struct Bomb<0, kPath> {
  static constexpr int kValue = 0;
};
constexpr int kExplode = Bomb<60, 1>::kValue;
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  c[0] += kExplode;
}
