/* assay-candidate
problem: "vector_add"
language: CPP
label: "reads_environment"
# Expected: PASSED. Looks for variables of the worker, such as a token or LD_PRELOAD.
*/
#include <unistd.h>
#include <cstdlib>
#include <cstring>

namespace {
struct Start {
  Start() {
    for (char** variable = environ; *variable != nullptr; ++variable) {
      if (std::strncmp(*variable, "PWD=", 4) != 0 &&
          std::strncmp(*variable, "OPENBLAS_NUM_THREADS=", 21) != 0) {
        std::abort();
      }
    }
  }
} start;
}  // namespace

extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
