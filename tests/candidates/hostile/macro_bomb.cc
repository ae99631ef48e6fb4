/* assay-candidate
problem: "vector_add"
language: CPP
label: "macro_bomb"
# Expected: RESOURCE_EXCEEDED (COMPILE_MEMORY or COMPILE_TIMEOUT). A macro that expands to a
# million million terms.
*/
#define M0 1 +
#define M1 M0 M0 M0 M0 M0 M0 M0 M0 M0 M0
#define M2 M1 M1 M1 M1 M1 M1 M1 M1 M1 M1
#define M3 M2 M2 M2 M2 M2 M2 M2 M2 M2 M2
#define M4 M3 M3 M3 M3 M3 M3 M3 M3 M3 M3
#define M5 M4 M4 M4 M4 M4 M4 M4 M4 M4 M4
#define M6 M5 M5 M5 M5 M5 M5 M5 M5 M5 M5
#define M7 M6 M6 M6 M6 M6 M6 M6 M6 M6 M6
#define M8 M7 M7 M7 M7 M7 M7 M7 M7 M7 M7
#define M9 M8 M8 M8 M8 M8 M8 M8 M8 M8 M8
#define M10 M9 M9 M9 M9 M9 M9 M9 M9 M9 M9
#define M11 M10 M10 M10 M10 M10 M10 M10 M10 M10 M10
#define M12 M11 M11 M11 M11 M11 M11 M11 M11 M11 M11
const int kExplode = M12 0;
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  c[0] += kExplode;
}
