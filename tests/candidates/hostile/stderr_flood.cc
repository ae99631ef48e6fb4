/* assay-candidate
problem: "vector_add"
language: CPP
label: "stderr_flood"
# Expected: RESOURCE_EXCEEDED (OUTPUT_FLOOD). Prints 64 MiB on standard error.
*/
#include <unistd.h>
#include <cstring>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  static char line[4096];
  std::memset(line, 'x', sizeof(line));
  for (int i = 0; i < 16384; ++i) {
    if (write(2, line, sizeof(line)) < 0) break;
  }
}
