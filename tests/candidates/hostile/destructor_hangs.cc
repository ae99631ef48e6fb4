/* assay-candidate
problem: "vector_add"
language: CPP
label: "destructor_hangs"
# Expected: PASSED (PASSED). Right, and hangs when it is unloaded: nothing waits for that.
*/
namespace {
volatile int forever = 1;
struct End {
  ~End() {
    while (forever != 0) {
    }
  }
} end;
}  // namespace

extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
