/* assay-candidate
problem: "vector_add"
language: CPP
label: "stack_overflow"
# Expected: RUNTIME_ERROR (CRASHED). Recurses without end.
*/
namespace {
int Deep(volatile char* from, int depth) {
  volatile char page[4096];
  page[0] = from[0];
  return depth > 0 ? Deep(page, depth - 1) + page[0] : 0;
}
}  // namespace

extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  (void)a, (void)b, (void)n;
  volatile char start = 1;
  c[0] = static_cast<float>(Deep(&start, 1 << 30));
}
