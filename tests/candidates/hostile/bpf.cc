/* assay-candidate
problem: "vector_add"
language: CPP
label: "bpf"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL). Loads a program into the kernel.
*/
#include <sys/syscall.h>
#include <unistd.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  char attributes[128] = {};
  (void)!syscall(SYS_bpf, 0, attributes, sizeof(attributes));
}
