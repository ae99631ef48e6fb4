/* assay-candidate
problem: "vector_add"
language: CPP
label: "parse_bomb"
# Expected: COMPILE_ERROR (COMPILE_FAILED or COMPILER_LIMIT). Brackets in brackets, none of
# which is closed.
*/
#define P0 ((((((((((((((((
#define P1 P0 P0 P0 P0 P0 P0 P0 P0 P0 P0 P0 P0 P0 P0 P0 P0
#define P2 P1 P1 P1 P1 P1 P1 P1 P1 P1 P1 P1 P1 P1 P1 P1 P1
int nested = P2 P2 0;
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
