/* assay-candidate
problem: "vector_add"
language: CPP
label: "makes_device"
# Expected: RUNTIME_ERROR (FORBIDDEN_SYSCALL). Makes a device node for the machine's memory.
*/
#include <sys/stat.h>
#include <sys/sysmacros.h>
extern "C" void vector_add(const float* a, const float* b, float* c, int64_t n) {
  for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
  (void)!mknod("/tmp/mem", S_IFCHR | 0600, makedev(1, 1));
}
