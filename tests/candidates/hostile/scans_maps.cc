/* assay-candidate
problem: "vector_add"
language: CPP
label: "scans_maps"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL or CRASHED). Looks in its memory map for the clock
# that times it.
*/
#include <cstdio>
#include <cstdlib>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  std::FILE* maps = std::fopen("/proc/self/maps", "r");
  if (maps == nullptr) std::abort();
  std::fclose(maps);
}
