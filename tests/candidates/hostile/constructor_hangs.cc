/* assay-candidate
problem: "vector_add"
language: CPP
label: "constructor_hangs"
# Expected: TIMED_OUT (TIMED_OUT). Never finishes loading.
*/
namespace {
volatile int forever = 1;
struct Start {
  Start() {
    while (forever != 0) {
    }
  }
} start;
}  // namespace

extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
