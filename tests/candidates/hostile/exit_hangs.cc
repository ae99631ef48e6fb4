/* assay-candidate
problem: "vector_add"
language: CPP
label: "exit_hangs"
# Expected: TIMED_OUT (TIMED_OUT). Calls exit, and a destructor then hangs.
*/
#include <cstdlib>

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
  std::exit(0);
}
