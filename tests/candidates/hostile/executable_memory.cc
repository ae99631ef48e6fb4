/* assay-candidate
problem: "vector_add"
language: CPP
label: "executable_memory"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL). Makes memory executable.
*/
#include <sys/mman.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
