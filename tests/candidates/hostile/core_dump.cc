/* assay-candidate
problem: "vector_add"
language: CPP
label: "core_dump"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL). Asks for a core file and crashes.
*/
#include <sys/resource.h>
#include <cstdlib>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  const rlimit most{RLIM_INFINITY, RLIM_INFINITY};
  setrlimit(RLIMIT_CORE, &most);
  std::abort();
}
